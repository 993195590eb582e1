"""The one way in for a person whose password, or provider, has vouched for them.

django-allauth asks for the second factor of those who have one (docs/adr/0063).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from allauth.account.internal.flows.login import perform_login, record_authentication
from allauth.account.models import Login
from django.contrib.auth import logout

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest, HttpResponse


def enter(request: HttpRequest, user: User, *, method: str, to: str = "") -> HttpResponse:
    """Sign a person in and redirect, or redirect to the page that asks for their second factor.

    `method` is `password` or `provider`; `to` is a path of this site, or empty for the chats.
    """
    if request.user.is_authenticated:
        logout(request)
    record_authentication(request, user, method)
    response: HttpResponse = perform_login(request, Login(user=user, redirect_url=to or None))
    return response
