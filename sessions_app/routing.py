"""The WebSocket paths (UAMP §13.1, spec/webagents-transports "UAMP WebSocket Transport").

Agent names may contain dots; they are one path segment.
"""

from typing import Any

from django.urls import re_path

from sessions_app.transports import websocket

socket: Any = websocket.application  # an ASGI application where Django's types expect a view
AGENT = r"(?P<agent>[^/]+)"

websocket_urlpatterns = [
    re_path(r"^uamp/?$", socket),
    re_path(r"^ws/?$", socket),
    re_path(r"^chats/(?P<chat_id>[^/]+)/uamp/?$", socket),
    re_path(rf"^agents/{AGENT}/uamp/?$", socket),
    re_path(rf"^{AGENT}/uamp/?$", socket),
]
