"""`/v1/messages`, the path of two protocols: envelopes of peers, and Anthropic's Messages API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.views.decorators.csrf import csrf_exempt

from federation_app.edges import http as envelopes
from gateway_app.anthropic import views as anthropic

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponseBase

VERSION: Final = "anthropic-version"
"""The header that Anthropic's API requires of every request, and its clients send."""


@csrf_exempt
async def messages(request: HttpRequest) -> HttpResponseBase:
    """Pass a request on to the protocol whose client sent it."""
    view = anthropic.messages if VERSION in request.headers else envelopes.messages
    response: HttpResponseBase = await view(request)
    return response
