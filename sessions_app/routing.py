"""The WebSocket paths (UAMP §13.1, spec/webagents-transports "UAMP WebSocket Transport").

Agent names may contain dots; they are one path segment.
"""

from typing import Any

from django.urls import re_path

from sessions_app.transports.websocket import UampConsumer

# Channels ships no types for this.
consumer: Any = UampConsumer.as_asgi()  # type: ignore[no-untyped-call]
AGENT = r"(?P<agent>[^/]+)"

websocket_urlpatterns = [
    re_path(r"^uamp/?$", consumer),
    re_path(r"^ws/?$", consumer),
    re_path(r"^chats/(?P<chat_id>[^/]+)/uamp/?$", consumer),
    re_path(rf"^agents/{AGENT}/uamp/?$", consumer),
    re_path(rf"^{AGENT}/uamp/?$", consumer),
]
