"""The WebSocket path of envelopes (envelope §7)."""

from typing import Any

from django.urls import re_path

from federation_app.edges import websocket

socket: Any = websocket.application  # an ASGI application, where Django's types expect a view

websocket_urlpatterns = [re_path(r"^uamp/1/ws/?$", socket)]
