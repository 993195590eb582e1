"""Known browsers: a signed cookie names the account that signed in before (docs/adr/0013).

`remember_device` runs when a person signs in, and `device_middleware` sends the cookie.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.contrib.auth.signals import user_logged_in
from django.core import signing
from django.dispatch import receiver
from django.utils.decorators import sync_and_async_middleware

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.contrib.auth.models import User
    from django.http import HttpRequest, HttpResponse

DEVICE_COOKIE: Final = "known_device"
DEVICE_SECONDS: Final = 365 * 24 * 3600
_SALT: Final = "known device"


def known_device(request: HttpRequest, username: str | None) -> str:
    """Return the id of the browser if this account has signed in there before, else ''."""
    try:
        stored = signing.loads(
            request.COOKIES.get(DEVICE_COOKIE, ""), salt=_SALT, max_age=DEVICE_SECONDS
        )
    except signing.BadSignature:
        return ""
    return str(stored["id"]) if stored["username"] == username else ""


@receiver(user_logged_in)
def remember_device(request: HttpRequest | None, user: User, **_: Any) -> None:
    """Sign a cookie for this browser and account, for `device_middleware` to send."""
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
    """Set the cookie of `remember_device` on the response to a sign-in."""
    if iscoroutinefunction(get_response):

        async def answer_async(request: HttpRequest) -> HttpResponse:
            return _with_cookie(request, await get_response(request))

        return answer_async

    def answer(request: HttpRequest) -> HttpResponse:
        return _with_cookie(request, get_response(request))

    return answer
