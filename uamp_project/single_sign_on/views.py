"""The two paths of sign-in with a provider: to the provider, and back with a code."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from agents_app.rest.views import address_of
from sessions_app.access import throttles
from sessions_app.bearer_tokens import people
from uamp_project.sign_in.entrance import enter
from uamp_project.single_sign_on import provider
from uamp_project.single_sign_on.roles import give_roles

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest, HttpResponse

logger = logging.getLogger(__name__)

NEXT: Final = "single_sign_on_next"


@require_safe
@never_cache
def begin(request: HttpRequest) -> HttpResponse:
    """Redirect the browser to the provider, which sends it back to `finish`."""
    if not provider.is_configured():
        raise Http404
    if not throttles.count(request, "writes", None).allowed:
        return _failed(request, _("Too many attempts. Wait a minute, then try again."))
    request.session[NEXT] = _local(request, request.GET.get("next", ""))
    callback = f"{settings.UAMP_ISSUER.rstrip('/')}{reverse('single_sign_on_callback')}"
    try:
        return provider.begin(request, callback)
    except provider.SignInFailed as error:
        logger.warning("the OpenID provider cannot be used: %s", error)
        return _failed(request, _("The sign-in service can't be reached. Try again later."))


@require_safe
@never_cache
def finish(request: HttpRequest) -> HttpResponse:
    """Sign in the person named by the provider, with a new session (`sign_in.entrance`)."""
    if not provider.is_configured():
        raise Http404
    if not throttles.count(request, "writes", None).allowed:
        return _failed(request, _("Too many attempts. Wait a minute, then try again."))
    following = request.session.pop(NEXT, "")
    try:
        claims = provider.finish(request)
    except provider.SignInFailed as error:
        logger.info("an OpenID sign-in failed: %s", error)
        return _failed(request, _("Signing in didn't work. Try again."))
    user = _person(claims)
    if user is None or not user.is_active:
        return _failed(
            request, _("You have no active account here. Ask an operator of the server.")
        )
    give_roles(user, claims, address=address_of(request))
    return enter(request, user, method="provider", to=_local(request, following))


def _person(claims: dict[str, object]) -> User | None:
    issuer, subject = settings.UAMP_OIDC_ISSUER, str(claims["sub"])
    if settings.UAMP_OIDC_CREATES_PEOPLE:
        return people.make_person(issuer, subject, claims, name_claim="preferred_username")
    return people.person_of(issuer, subject)


def _local(request: HttpRequest, target: str) -> str:
    """Return a path of this site; '' for any other target."""
    is_ours = url_has_allowed_host_and_scheme(
        target, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return target if is_ours else ""


def _failed(request: HttpRequest, message: str) -> HttpResponse:
    messages.error(request, message)
    return redirect("login")
