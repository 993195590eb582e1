"""The pages of the browser chat: a shell that the components fill.

A page carries no message. It names the signed-in person and the chat to open; everything
else comes over REST and the socket, where the rules of membership are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.auth import views as auth
from django.contrib.auth.decorators import login_required
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_safe

from agents_app.rest.views import caller
from chat_app.people.profiles import profile_data
from chat_app.people.settings import settings_data, settings_of

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@require_safe
@never_cache
@login_required
@ensure_csrf_cookie
def chat(request: HttpRequest, chat_id: str = "") -> HttpResponse:
    """Return the shell of the chat; `chat_id` is the chat that it opens first.

    The id is not looked up: a stranger and a wrong id get the same page, and the same answer from
    REST. Without a session the answer is a redirect to the login page.
    """
    start = {
        "me": _me(request),
        "settings": settings_data(settings_of(caller(request).pk)),
        "chat_id": chat_id,
        "upload_bytes": settings.UAMP_UPLOAD_BYTES,
        "csrf_cookie": settings.CSRF_COOKIE_NAME,
    }
    return render(request, "chat_app/chat.html", {"start": start})


@require_safe
@never_cache
@login_required
@ensure_csrf_cookie
def money(request: HttpRequest) -> HttpResponse:
    """Return the shell of the page on one's money; every figure comes over REST."""
    start = {
        "me": _me(request),
        "csrf_cookie": settings.CSRF_COOKIE_NAME,
    }
    return render(request, "chat_app/money.html", {"start": start})


def _me(request: HttpRequest) -> dict[str, Any]:
    user = caller(request)
    return {"id": str(user.pk), "username": user.get_username(), **profile_data(user)}


class LoginView(auth.LoginView):
    """The login page; a signed-in person goes on to the chats."""

    redirect_authenticated_user = True


class LogoutView(auth.LogoutView):
    """Sign out, by POST only, and show the login page."""
