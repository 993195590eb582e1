"""Django's and CSP's middleware on the event loop.

Django calls each middleware step in a thread that it starts for the request. Most steps only read
and write headers, which the loop can do itself. Only a step that may use the database or read the
body of a form runs in the request's thread, as before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from asgiref.sync import sync_to_async
from csp.middleware import CSPMiddleware
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.common import CommonMiddleware
from django.middleware.csrf import CsrfViewMiddleware
from django.middleware.security import SecurityMiddleware
from django.utils.deprecation import MiddlewareMixin

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


class _OnLoop(MiddlewareMixin):
    """Calls the steps of the middleware that follows it among the bases of a class."""

    async def __acall__(self, request: HttpRequest) -> HttpResponseBase:
        process_request = getattr(self, "process_request", None)
        response = process_request(request) if process_request is not None else None
        if response is None:
            response = await self.get_response(request)  # type: ignore[misc]  # the next one is asynchronous
        answered = getattr(self, "process_response", None)
        if answered is not None and self._may_block(request):
            response = await sync_to_async(answered)(request, response)
        elif answered is not None:
            response = answered(request, response)
        return response  # type: ignore[no-any-return]

    def _may_block(self, request: HttpRequest) -> bool:  # noqa: ARG002 subclasses use it
        """Return whether the step after the view may use the database."""
        return False


class LoopSecurity(_OnLoop, SecurityMiddleware):
    """Redirects to HTTPS, and sets HSTS and other headers."""


class LoopContentPolicy(_OnLoop, CSPMiddleware):
    """Sets the Content-Security-Policy."""


class LoopSessions(_OnLoop, SessionMiddleware):
    """Gives the request the Django session of its cookie, loaded on first use."""

    def _may_block(self, request: HttpRequest) -> bool:
        return request.session.modified


class LoopCommon(_OnLoop, CommonMiddleware):
    """Refuses a Host that is not served here, and sets the Content-Length."""


class LoopCsrf(_OnLoop, CsrfViewMiddleware):
    """Refuses forms without a CSRF token."""

    async def process_view(  # type: ignore[override]  # Django awaits it
        self,
        request: HttpRequest,
        callback: Callable[..., Any],
        callback_args: tuple[Any, ...],
        callback_kwargs: dict[str, Any],
    ) -> Any:
        """Return the refusal of a form, whose body is read in the request's thread."""
        check = super().process_view
        if request.method in _SAFE or getattr(callback, "csrf_exempt", False):
            return check(request, callback, callback_args, callback_kwargs)
        return await sync_to_async(check)(request, callback, callback_args, callback_kwargs)


class LoopAuthentication(_OnLoop, AuthenticationMiddleware):
    """Gives the request its user, loaded on first use."""


class LoopMessages(_OnLoop, MessageMiddleware):
    """Stores the messages for a person's next page."""

    def _may_block(self, request: HttpRequest) -> bool:
        messages = getattr(request, "_messages", None)
        return messages is not None and bool(messages.used or messages.added_new)


class LoopFrames(_OnLoop, XFrameOptionsMiddleware):
    """Forbids other sites to show a page in a frame."""


_ON_LOOP: Final[dict[Any, Any]] = {
    SecurityMiddleware: LoopSecurity,
    CSPMiddleware: LoopContentPolicy,
    SessionMiddleware: LoopSessions,
    CommonMiddleware: LoopCommon,
    CsrfViewMiddleware: LoopCsrf,
    AuthenticationMiddleware: LoopAuthentication,
    MessageMiddleware: LoopMessages,
    XFrameOptionsMiddleware: LoopFrames,
}


def on_loop(middleware: Any) -> Any:
    """Return the loop version of a middleware, or the middleware itself if it needs no thread."""
    return _ON_LOOP.get(middleware, middleware)
