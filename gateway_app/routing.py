"""The WebSocket paths of foreign protocols, for the server and for each agent."""

from typing import Any

from django.urls import re_path

from gateway_app.acp import consumer as acp
from gateway_app.openai_responses import consumer as responses
from gateway_app.realtime import consumer as realtime

acp_socket: Any = acp.application  # an ASGI application, where Django's types expect a view
realtime_socket: Any = realtime.application
responses_socket: Any = responses.application
AGENT = r"agents/(?P<agent>[^/]+)/"

websocket_urlpatterns = [
    re_path(rf"^(?:{AGENT})?acp(?:/stream)?/?$", acp_socket),
    re_path(rf"^(?:{AGENT})?(?:v1/)?realtime/?$", realtime_socket),
    re_path(rf"^(?:{AGENT})?(?:v1/)?responses/?$", responses_socket),
]
