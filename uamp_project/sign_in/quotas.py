"""Limits on the passwords checked per minute, by address and by account.

Each check costs a hash. UAMP_SIGN_INS_PER_MINUTE limits the checks of an address, and those of an
account, with separate counts for unknown browsers and for each known one (`devices`).
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin

from agents_app.workers import connections
from chat_app.browser.site import site_name
from sessions_app.access import rates
from uamp_project.sign_in.devices import known_device
from uamp_project.sign_in.failures import client_address
from uamp_project.sign_in.password_hashing import TooManyPasswords

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

BUSY_SECONDS: Final = 5
"""The `Retry-After` of a sign-in refused with TooManyPasswords."""


class TooManySignIns(Exception):
    """An address or account exceeded UAMP_SIGN_INS_PER_MINUTE; `template` is the page."""

    template = "registration/busy.html"

    def __init__(self, quota: rates.Quota) -> None:
        super().__init__(quota)
        self.quota = quota


class CountingBackend:
    """Authenticates no account, but counts the passwords that the next backend would check."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
    ) -> None:
        """Count a password; raises TooManySignIns."""
        del password
        if request is not None:
            count_attempt(request, username)


def count_attempt(request: HttpRequest, username: str | None) -> None:
    """Count an attempt to sign in, by address and account; raises TooManySignIns."""
    device = known_device(request, username)
    names = [f"device:{device}" if device else f"account:{username}"]
    if (address := client_address(request)) is not None:
        names.insert(0, rates.visitors(address))
    connections.release()  # the counters may be in Redis
    for name in names:
        quota = rates.limiter().hit("sign-ins", name)
        if not quota.allowed:
            raise TooManySignIns(quota)


class RefusalMiddleware(MiddlewareMixin):
    """Answers with 429 or 503 if a password was not checked."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return the page for a refusal."""
        del request
        template = TooManySignIns.template
        if isinstance(exception, TooManySignIns):
            status, seconds = HTTPStatus.TOO_MANY_REQUESTS, exception.quota.retry_after
            template = exception.template
        elif isinstance(exception, TooManyPasswords):
            status, seconds = HTTPStatus.SERVICE_UNAVAILABLE, BUSY_SECONDS
        else:
            return None
        response = render(
            None, template, {"seconds": seconds, "server_name": site_name()}, status=status
        )
        response["Retry-After"] = str(seconds)
        response["Cache-Control"] = "no-store"
        return response
