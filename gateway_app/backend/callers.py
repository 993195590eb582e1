"""The check of a request's credential, before anything else of the request is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings

from sessions_app.transports.http_exchange import identify_caller
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from django.http import HttpRequest


async def check_credential(request: HttpRequest, protocol: str, *, takes_visitors: bool) -> None:
    """Refuse a request with an invalid credential, or a POST that lacks a required one.

    The views decide what visitors may read. Raises RemoteProtocolError unauthorized, token_expired
    or forbidden.
    """
    principal = await identify_caller(request, protocol=protocol)
    may_visit = takes_visitors and settings.UAMP_ALLOW_ANONYMOUS
    if request.method == "POST" and principal.is_visitor and not may_visit:
        raise RemoteProtocolError(ErrorCode.UNAUTHORIZED, "Sign in, or send a token.")
