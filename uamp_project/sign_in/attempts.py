"""Attempts to sign in other than with a password: they share its quotas and its pauses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axes.handlers.proxy import AxesProxyHandler
from django.contrib.auth.signals import user_login_failed

from uamp_project.sign_in.quotas import count_attempt

if TYPE_CHECKING:
    from django.http import HttpRequest


class SignInPaused(Exception):
    """Signing in is paused for the account or the address; axes' middleware responds with 429."""


def begin_attempt(request: HttpRequest, username: str) -> None:
    """Count an attempt to sign in to an account; raises TooManySignIns and SignInPaused."""
    if not AxesProxyHandler.is_allowed(request, {"username": username}):
        request.axes_locked_out = True  # type: ignore[attr-defined]  # axes reads it
        raise SignInPaused
    count_attempt(request, username)


def fail_attempt(request: HttpRequest, username: str) -> None:
    """Count a failure, as of a wrong password."""
    user_login_failed.send(sender=__name__, credentials={"username": username}, request=request)
