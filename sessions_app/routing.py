"""The WebSocket paths (UAMP §13.1, spec/webagents-transports "UAMP WebSocket Transport").

Agent names may contain dots; they are one path segment.
"""

from django.urls import re_path

from sessions_app.consumers import UampConsumer

AGENT = r"(?P<agent>[^/]+)"

websocket_urlpatterns = [
    re_path(r"^uamp/?$", UampConsumer.as_asgi()),
    re_path(r"^ws/?$", UampConsumer.as_asgi()),
    re_path(r"^chats/(?P<chat_id>[^/]+)/uamp/?$", UampConsumer.as_asgi()),
    re_path(rf"^agents/{AGENT}/uamp/?$", UampConsumer.as_asgi()),
    re_path(rf"^{AGENT}/uamp/?$", UampConsumer.as_asgi()),
]
