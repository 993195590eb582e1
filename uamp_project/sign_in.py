"""Wrong passwords are counted, on the login page and in the admin alike (docs/adr/0013).

django-axes keeps the counts in rows, so that all processes share them. Three of them can refuse a
sign-in for UAMP_SIGN_IN_PAUSE_MINUTES: of an account from one address, of an account from
everywhere, and of an address. A browser in which the person signed in before has a cookie that says
so and a count of its own: others cannot lock the person out of it. The answer is the same whether
the account exists or not.

Right ones are counted too, since each costs a hash: UAMP_SIGN_INS_PER_MINUTE of an address, and of
an account in the browsers that it does not know, or in one that it knows.
"""

from __future__ import annotations

import ipaddress
import math
import secrets
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from asgiref.sync import iscoroutinefunction
from axes.handlers.database import AxesDatabaseHandler
from axes.helpers import get_client_username
from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.auth.signals import user_logged_in
from django.core import signing
from django.db.models import Q, Sum
from django.dispatch import receiver
from django.shortcuts import render
from django.utils import timezone
from django.utils.decorators import sync_and_async_middleware
from django.utils.deprecation import MiddlewareMixin

from agents_app.workers import connections
from sessions_app.access import rates
from uamp_project.password_hashing import TooManyPasswords

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from django.contrib.auth.models import User
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse

DEVICE_COOKIE: Final = "known_device"
DEVICE_SECONDS: Final = 365 * 24 * 3600
_SALT: Final = "known device"
# What stands in a row's `user_agent`: a browser that is known, or what any other says of itself.
_KNOWN: Final = "device "
_UNKNOWN: Final = "agent "
_AGENT_CHARS: Final = 200
BUSY_SECONDS: Final = 5
"""When a person whose password found no room among those being hashed may try again."""


def client_address(request: HttpRequest) -> str | None:
    """Return the address of a request, which uamp_project.edge found out; None without one."""
    try:
        return str(ipaddress.ip_address(str(request.META.get("REMOTE_ADDR", ""))))
    except ValueError:
        return None


def known_device(request: HttpRequest, username: str | None) -> str:
    """Return the id of the browser if this account signed in there before, else ''."""
    try:
        kept = signing.loads(
            request.COOKIES.get(DEVICE_COOKIE, ""), salt=_SALT, max_age=DEVICE_SECONDS
        )
    except signing.BadSignature:
        return ""
    return str(kept["id"]) if kept["username"] == username else ""


class SignInHandler(AxesDatabaseHandler):
    """Says when an account, an address or both have failed too often."""

    def user_login_failed(
        self,
        sender: Any,
        credentials: dict[str, Any],
        request: HttpRequest | None = None,
        **kwargs: Any,
    ) -> None:
        """Count a failure under the browser that is known, or with all the others."""
        if request is not None:
            device = known_device(request, get_client_username(request, credentials))
            agent = str(request.META.get("HTTP_USER_AGENT", ""))[:_AGENT_CHARS]
            request.axes_user_agent = _KNOWN + device if device else _UNKNOWN + agent  # type: ignore[attr-defined]  # axes put it there
        super().user_login_failed(sender, credentials, request, **kwargs)

    def get_failures(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        """Return AXES_FAILURE_LIMIT when one of the limits is reached, else 0."""
        username, address = get_client_username(request, credentials), client_address(request)
        pause = timedelta(minutes=settings.UAMP_SIGN_IN_PAUSE_MINUTES)
        rows = AccessAttempt.objects.filter(attempt_time__gte=timezone.now() - pause)
        of_account, from_address = Q(username=username), Q(ip_address=address)
        if device := known_device(request, username):
            counted = {"own": of_account & Q(user_agent=_KNOWN + device)}
        else:
            rows = rows.exclude(user_agent__startswith=_KNOWN)
            counted = {
                "own": of_account & from_address,
                "account": of_account,
                "address": from_address,
            }
        found = rows.filter(of_account | from_address).aggregate(
            **{name: Sum("failures_since_start", filter=which) for name, which in counted.items()}
        )
        limits = {
            "own": settings.UAMP_SIGN_IN_FAILURES,
            "account": settings.UAMP_SIGN_IN_FAILURES_PER_ACCOUNT,
            "address": settings.UAMP_SIGN_IN_FAILURES_PER_ADDRESS,
        }
        reached = [name for name, count in found.items() if (count or 0) >= limits[name]]
        if not reached:
            return 0
        ends = [_falls_below(limits[name], rows.filter(counted[name])) for name in reached]
        request.sign_in_paused_until = max(ends) + pause  # type: ignore[attr-defined]  # read below
        return int(settings.AXES_FAILURE_LIMIT)


def _falls_below(limit: int, rows: QuerySet[AccessAttempt]) -> datetime:
    """Return the time of the failures that, once forgotten, leave fewer than `limit`."""
    found = list(rows.order_by("attempt_time").values_list("attempt_time", "failures_since_start"))
    left = sum(failures for _, failures in found)
    for attempt_time, failures in found:
        left -= failures
        if left < limit:
            return attempt_time
    return timezone.now()


def locked_response(request: HttpRequest, *_: object) -> HttpResponse:
    """Return the page that says how long to wait and what else can be done (429)."""
    pause = timedelta(minutes=settings.UAMP_SIGN_IN_PAUSE_MINUTES)
    until: datetime = getattr(request, "sign_in_paused_until", timezone.now() + pause)
    seconds = max(1, math.ceil((until - timezone.now()).total_seconds()))
    minutes = math.ceil(seconds / 60)
    response = render(None, "registration/locked.html", {"minutes": minutes}, status=429)
    response["Retry-After"] = str(seconds)
    response["Cache-Control"] = "no-store"
    return response


class TooManySignIns(Exception):
    """One more password of an address or account than UAMP_SIGN_INS_PER_MINUTE."""

    def __init__(self, quota: rates.Quota) -> None:
        super().__init__(quota)
        self.quota = quota


class CountingBackend:
    """Knows no person, and counts the passwords that the next backend would check."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
    ) -> None:
        """Count a password; raises TooManySignIns."""
        del password
        if request is None:
            return
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
    """Answers 429 and 503 where a password was not checked."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return the page for a refusal."""
        del request
        if isinstance(exception, TooManySignIns):
            status, seconds = HTTPStatus.TOO_MANY_REQUESTS, exception.quota.retry_after
        elif isinstance(exception, TooManyPasswords):
            status, seconds = HTTPStatus.SERVICE_UNAVAILABLE, BUSY_SECONDS
        else:
            return None
        response = render(None, "registration/busy.html", {"seconds": seconds}, status=status)
        response["Retry-After"] = str(seconds)
        response["Cache-Control"] = "no-store"
        return response


@receiver(user_logged_in)
def remember_device(request: HttpRequest | None, user: User, **_: Any) -> None:
    """Have the browser know itself again: `device_middleware` sends the cookie."""
    if request is not None:
        device = known_device(request, user.get_username()) or secrets.token_urlsafe(16)
        request.signed_in_device = signing.dumps(  # type: ignore[attr-defined]  # read below
            {"username": user.get_username(), "id": device}, salt=_SALT
        )


def _with_cookie(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    if (device := getattr(request, "signed_in_device", None)) is not None:
        response.set_cookie(
            DEVICE_COOKIE,
            device,
            max_age=DEVICE_SECONDS,
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=True,
            samesite="Lax",
        )
    return response


@sync_and_async_middleware
def device_middleware(get_response: Callable[..., Any]) -> Callable[..., Any]:
    """Send a browser in which a person signed in the cookie that says so."""
    if iscoroutinefunction(get_response):

        async def answer_async(request: HttpRequest) -> HttpResponse:
            return _with_cookie(request, await get_response(request))

        return answer_async

    def answer(request: HttpRequest) -> HttpResponse:
        return _with_cookie(request, get_response(request))

    return answer
