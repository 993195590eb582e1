"""Cross-origin requests: which other sites' pages may read API responses (CORS).

It wraps `application`, so that a page can read every refusal too, with its status and
`Retry-After`; Django middleware would not see those. Pages of UAMP_CORS_ORIGINS call with a key:
browsers send no cookie and no response permits one, so `*` is allowed there. Pages of
TRUSTED_ORIGINS may send their cookie. This server's own pages are closed to other origins.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from django.conf import settings
from starlette.middleware.cors import CORSMiddleware

if TYPE_CHECKING:
    from uamp_project.edge.transports import Application, Receive, Scope, Send

_PROGRAMS: Final = re.compile(
    r"/(?:agents|api|chat/completions|schemas|v1|\.well-known|events|uamp|capabilities|models|info)(?:/|\Z)"
)
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
EXPOSED: Final = (
    "Acp-Connection-Id",
    "Acp-Session-Id",
    "A2A-Extensions",
    "ETag",
    "Location",
    "Mcp-Protocol-Version",
    "Mcp-Session-Id",
    "PAYMENT-REQUIRED",
    "PAYMENT-RESPONSE",
    "RateLimit-Limit",
    "RateLimit-Policy",
    "RateLimit-Remaining",
    "RateLimit-Reset",
    "Retry-After",
    "X-Chat-ID",
    "X-PAYMENT-RESPONSE",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "X-Request-Id",
    "X-Session-ID",
)
"""The response headers that a page of another origin may read."""


class CrossOrigin:
    """Wraps the application whose responses pages of allowed origins may read."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection, answering the preflight requests of allowed paths."""
        rule = self._rule(scope) if scope["type"] == "http" else None
        await (rule or self._application)(scope, receive, send)

    def _rule(self, scope: Scope) -> Application | None:
        """Return the application for the origin of a request; None if no rule applies."""
        headers = dict(scope["headers"])
        origin = headers.get(b"origin", b"").decode("latin-1")
        if not origin or not _PROGRAMS.match(scope["path"]):
            return None
        if scope["method"] == "OPTIONS" and (
            b"content-length" in headers or b"transfer-encoding" in headers
        ):
            # A preflight has no body; other OPTIONS requests are counted and limited inside.
            return None
        trusted, allowed = settings.CSRF_TRUSTED_ORIGINS, settings.UAMP_CORS_ORIGINS
        if origin in trusted:
            return _middleware(self._application, tuple(trusted), with_cookies=True)
        return _middleware(self._application, tuple(allowed)) if allowed else None


@lru_cache(maxsize=8)
def _middleware(
    application: Application, origins: tuple[str, ...], *, with_cookies: bool = False
) -> Application:
    return CORSMiddleware(
        application,
        allow_origins=origins,
        allow_methods=_METHODS,
        allow_headers=("*",),
        allow_credentials=with_cookies,
        expose_headers=EXPOSED,
    )
