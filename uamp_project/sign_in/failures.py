"""Wrong passwords pause sign-in, on the login page and in the admin alike (docs/adr/0013).

django-axes stores the counts in rows, which all processes share. Three counts can pause sign-in for
UAMP_SIGN_IN_PAUSE_MINUTES: of an account from one address, of an account from anywhere, and of an
address. A browser in which the person signed in before has a signed cookie (`devices`) and a
separate count, so that other people cannot lock the person out of it. The response does not reveal
whether the account exists.
"""

from __future__ import annotations

import ipaddress
import math
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from axes.handlers.database import AxesDatabaseHandler
from axes.helpers import get_client_username
from axes.models import AccessAttempt
from django.conf import settings
from django.db.models import Q, Sum
from django.shortcuts import render
from django.utils import timezone

from chat_app.browser.site import site_name
from uamp_project.sign_in.devices import known_device

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse

# The `user_agent` of a row: a known browser, or the User-Agent header of an unknown one.
_KNOWN: Final = "device "
_UNKNOWN: Final = "agent "
_AGENT_CHARS: Final = 200


def client_address(request: HttpRequest) -> str | None:
    """Return the address of a request, set by uamp_project.edge; None if it has none."""
    try:
        return str(ipaddress.ip_address(str(request.META.get("REMOTE_ADDR", ""))))
    except ValueError:
        return None


class SignInHandler(AxesDatabaseHandler):
    """Counts wrong passwords, and pauses an account, an address or both."""

    def user_login_failed(
        self,
        sender: Any,
        credentials: dict[str, Any],
        request: HttpRequest | None = None,
        **kwargs: Any,
    ) -> None:
        """Count a failure for the known browser, or together with all unknown ones."""
        if request is not None:
            device = known_device(request, get_client_username(request, credentials))
            agent = str(request.META.get("HTTP_USER_AGENT", ""))[:_AGENT_CHARS]
            request.axes_user_agent = _KNOWN + device if device else _UNKNOWN + agent  # type: ignore[attr-defined]  # axes put it there
        super().user_login_failed(sender, credentials, request, **kwargs)

    def get_failures(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        """Return AXES_FAILURE_LIMIT if any limit is reached, else 0."""
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
        sums = rows.filter(of_account | from_address).aggregate(
            **{name: Sum("failures_since_start", filter=which) for name, which in counted.items()}
        )
        limits = {
            "own": settings.UAMP_SIGN_IN_FAILURES,
            "account": settings.UAMP_SIGN_IN_FAILURES_PER_ACCOUNT,
            "address": settings.UAMP_SIGN_IN_FAILURES_PER_ADDRESS,
        }
        reached = [name for name, count in sums.items() if (count or 0) >= limits[name]]
        if not reached:
            return 0
        ends = [_falls_below(limits[name], rows.filter(counted[name])) for name in reached]
        request.sign_in_paused_until = max(ends) + pause  # type: ignore[attr-defined]  # read below
        return int(settings.AXES_FAILURE_LIMIT)


def _falls_below(limit: int, rows: QuerySet[AccessAttempt]) -> datetime:
    """Return the time of the failure whose expiry leaves fewer than `limit`."""
    attempts = list(
        rows.order_by("attempt_time").values_list("attempt_time", "failures_since_start")
    )
    remaining = sum(failures for _, failures in attempts)
    for attempt_time, failures in attempts:
        remaining -= failures
        if remaining < limit:
            return attempt_time
    return timezone.now()


def locked_response(request: HttpRequest, *_: object) -> HttpResponse:
    """Return the page with the minutes to wait and other ways to sign in (429)."""
    pause = timedelta(minutes=settings.UAMP_SIGN_IN_PAUSE_MINUTES)
    until: datetime = getattr(request, "sign_in_paused_until", timezone.now() + pause)
    seconds = max(1, math.ceil((until - timezone.now()).total_seconds()))
    minutes = math.ceil(seconds / 60)
    context = {"minutes": minutes, "server_name": site_name()}
    response = render(None, "registration/locked.html", context, status=429)
    response["Retry-After"] = str(seconds)
    response["Cache-Control"] = "no-store"
    return response
