"""Defaults that an HTTP request gives the sessions it opens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessions_app.access import auth
from sessions_app.connection.defaults import Defaults

if TYPE_CHECKING:
    from django.http import HttpRequest


def defaults_of(request: HttpRequest) -> Defaults:
    """Return a request's defaults for the sessions that it opens."""
    handshake = auth.Handshake.of(request.scope)  # type: ignore[attr-defined]  # an ASGIRequest
    return Defaults(
        agent=_url_agent(request) or request.headers.get("X-Agent-Id"),
        chat=request.headers.get("X-Chat-Id"),
        payment_token=handshake.payment_token or None,
    )


def _url_agent(request: HttpRequest) -> str | None:
    match = request.resolver_match
    return match.kwargs.get("name") if match else None
