"""The pages of django-allauth with the quotas of this server; none is cached."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from allauth.account.internal.flows.login import record_authentication
from allauth.account.models import EmailAddress
from allauth.mfa.base import views as base
from allauth.mfa.models import Authenticator
from allauth.mfa.totp import views as totp
from allauth.mfa.webauthn import views as webauthn
from allauth.mfa.webauthn.internal import auth
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import IntegrityError, transaction
from django.http import Http404
from django.shortcuts import redirect
from django.urls import reverse_lazy
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from agents_app.rest.views import caller
from sessions_app.access import throttles
from sessions_app.rest.access.account import counted
from uamp_project.account_security.codes import use_up
from uamp_project.sign_in.quotas import TooManySignIns

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse
    from django.http.response import HttpResponseBase

    from uamp_project.account_security.codes import NewAppForm
    from uamp_project.account_security.passkeys import NewPasskeyForm


def account_page(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Return a page of a signed-in person's own account, whose forms count as writes.

    Visitors are redirected before allauth would keep their form in a session.
    """
    page: Callable[..., HttpResponseBase] = sensitive_post_parameters()(
        never_cache(login_required(counted(view)))
    )
    return page


def entrance(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Return a page for visitors, whose forms count themselves."""
    page: Callable[..., HttpResponseBase] = sensitive_post_parameters()(never_cache(view))
    return page


def by_mail(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Return a page that exists only if the server sends emails."""

    @wraps(view)
    def sent(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if settings.UAMP_MAIL == "off":
            raise Http404
        return view(request, *args, **kwargs)

    return sent


class SecurityView(base.IndexView):
    """A person's means of signing in: address, authenticator app, passkeys, recovery codes."""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add the email address, and whether the person has a password to confirm changes with."""
        user = caller(self.request)
        addresses = EmailAddress.objects.filter(user=user).order_by("-verified")
        return {
            **super().get_context_data(**kwargs),
            "address": addresses.first(),
            "mails": settings.UAMP_MAIL != "off",
            "has_password": user.has_usable_password(),
        }


class NewAppView(totp.ActivateTOTPView):
    """Adds an authenticator app, whose first code is used up."""

    def form_valid(self, form: NewAppForm) -> HttpResponse:
        """Store the app; if another tab did so meanwhile, change nothing."""
        user = caller(self.request)
        try:
            with transaction.atomic():
                added = super().form_valid(form)
                row = Authenticator.objects.get(user=user, type=Authenticator.Type.TOTP)
                use_up(row, form.counter)
        except IntegrityError:
            messages.error(self.request, _("Another authenticator app was added in the meantime."))
            return redirect("mfa_index")
        record_authentication(self.request, user, "mfa", id=row.pk, type=row.type)
        return added


class NewPasskeyView(webauthn.AddWebAuthnView):
    """Adds a passkey, which the authenticator stores and protects with a PIN or a finger."""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Request a passkey that needs no name; the form shows its errors."""
        context = super().get_context_data(**kwargs)
        options = auth.begin_registration(caller(self.request), passwordless=True)
        return {**context, **kwargs, "js_data": {"creation_options": options}}

    def form_valid(self, form: NewPasskeyForm) -> HttpResponse:
        """Store the passkey, which counts as this session's second factor."""
        with transaction.atomic():
            added = super().form_valid(form)
        record_authentication(self.request, caller(self.request), "mfa", type="webauthn")
        return added


class PasskeySignInView(webauthn.LoginWebAuthnView):
    """Signs in with a passkey alone; the challenge is stored in a session."""

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Return a challenge, which counts as a write of the address; raises TooManySignIns."""
        quota = throttles.count(request, "writes", None)
        if not quota.allowed:
            raise TooManySignIns(quota)
        return super().get(request, *args, **kwargs)


class RemovePasskeyView(webauthn.RemoveWebAuthnView):
    """Removes a passkey, after a page that asks."""

    success_url = reverse_lazy("mfa_index")


class ConfirmPasskeyView(webauthn.ReauthenticateWebAuthnView):
    """Confirms a change with a passkey."""

    def form_invalid(self, form: Any) -> HttpResponse:
        """Show the page again, with a new challenge."""
        for message in form.errors.get("credential", []):
            messages.error(self.request, message)
        return redirect(self.request.get_full_path())
