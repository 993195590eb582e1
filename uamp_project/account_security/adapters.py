"""Deviations from django-allauth's defaults."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from cryptography.fernet import InvalidToken
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import authenticate
from django.core.mail import EmailMessage
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chat_app.browser.site import given_name, site_name
from signing_app.encryption import cipher
from uamp_project.account_security import mails

if TYPE_CHECKING:
    from django.contrib.auth.base_user import AbstractBaseUser
    from django.http import HttpRequest, HttpResponse

logger = logging.getLogger(__name__)

_PURPOSE: Final = "uamp_project.account_security"
_NOTES: Final = {
    "account/messages/email_confirmation_sent.txt": _(
        "We sent an email to %(email)s. Open the link in it to confirm the address."
    ),
    "account/messages/email_confirmed.txt": _("Your email address %(email)s is confirmed."),
    "account/messages/email_confirmation_failed.txt": _(
        "%(email)s belongs to another account. It wasn't confirmed."
    ),
    "account/messages/email_deleted.txt": _("The email address %(email)s was removed."),
    "account/messages/password_changed.txt": _(
        "Your password was changed. Your API keys were revoked, and you were signed out"
        " everywhere. Sign in with the new password."
    ),
    "mfa/messages/totp_activated.txt": _("The authenticator app was added."),
    "mfa/messages/totp_deactivated.txt": _("The authenticator app was removed."),
    "mfa/messages/webauthn_added.txt": _("The passkey was added."),
    "mfa/messages/webauthn_removed.txt": _("The passkey was removed."),
}


def name_of(user: AbstractBaseUser) -> str:
    """Return the name under which authenticators show an account."""
    return user.get_username()


class AccountAdapter(DefaultAccountAdapter):
    """Messages, emails and links of this server; passwords are checked as on the login page."""

    error_messages = {  # noqa: RUF012 allauth declares it
        **DefaultAccountAdapter.error_messages,
        "duplicate_email": _("Your account already has this address."),
        "incorrect_password": _("Wrong password."),
        "invalid_password_reset": _("This link is no longer valid."),
    }

    def get_login_stages(self) -> list[str]:
        """Return the stages after the first factor: only the second."""
        return ["allauth.mfa.stages.AuthenticateStage"]

    def is_ajax(self, request: HttpRequest) -> bool:
        """Return whether to answer with JSON, which only the options of a passkey are."""
        return request.path == reverse("mfa_login_webauthn") and bool(super().is_ajax(request))

    def add_message(
        self,
        request: HttpRequest,
        level: int,
        message_template: str | None = None,
        message_context: dict[str, Any] | None = None,
        extra_tags: str = "",
        message: str | None = None,
    ) -> None:
        """Show a text of ours; changes without one are evident from the next page."""
        if message is None and (note := _NOTES.get(message_template or "")) is not None:
            message = str(note) % (message_context or {})
        if message:
            messages.add_message(request, level, message, extra_tags=extra_tags)

    def reauthenticate(self, user: AbstractBaseUser, password: str) -> bool:
        """Check a password like the login page, which counts wrong ones (docs/adr/0013)."""
        name = user.get_username()
        return authenticate(self.request, username=name, password=password) is not None

    def respond_user_inactive(self, request: HttpRequest, user: AbstractBaseUser) -> HttpResponse:
        """Return to the login page."""
        del user
        messages.error(request, gettext("Your account is deactivated. Ask an operator."))
        return redirect("login")

    def get_reset_password_from_key_url(self, key: str) -> str:
        """Return the link under the public address: the request's Host may be a forger's."""
        path = reverse("account_reset_password_from_key", args=["UID", "KEY"])
        return _public(path.replace("UID-KEY", key))

    def get_email_confirmation_url(self, request: HttpRequest, emailconfirmation: Any) -> str:
        """Return the link under the public address, as above."""
        del request
        return _public(reverse("account_confirm_email", args=[emailconfirmation.key]))

    def get_email_verification_redirect_url(self, email_address: Any) -> str:
        """Return the page to which a confirmed address leads."""
        del email_address
        return reverse("mfa_index" if self.request.user.is_authenticated else "login")

    def send_password_reset_mail(
        self, user: AbstractBaseUser, email: str, context: dict[str, Any]
    ) -> None:
        """Send the link, unless the person signs in without a password: with a provider."""
        if user.has_usable_password():
            super().send_password_reset_mail(user, email, context)

    def send_notification_mail(
        self,
        template_prefix: str,
        user: AbstractBaseUser,
        context: dict[str, Any] | None = None,
        email: str | None = None,
    ) -> None:
        """Tell the person of a change to their account."""
        super().send_notification_mail(
            template_prefix, user, {**(context or {}), "user": user}, email
        )

    def get_client_ip(self, request: HttpRequest) -> str:
        """Return the address that uamp_project.edge determined."""
        return str(request.META.get("REMOTE_ADDR", ""))

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Send an email in the background, in the language of the page that requests it."""
        if settings.UAMP_MAIL == "off":
            return
        values = {**context, "server": settings.UAMP_ISSUER}
        subject, text = mails.compose(template_prefix, values)
        mails.deliver(EmailMessage(f"[{site_name()}] {subject}", text, to=[email]))


class SecondFactorAdapter(DefaultMFAAdapter):
    """Secrets encrypted with a key derived from SECRET_KEY, and passkeys for UAMP_ISSUER."""

    error_messages = {  # noqa: RUF012 allauth declares it
        **DefaultMFAAdapter.error_messages,
        "incorrect_code": _("That didn't work. Try again."),
    }

    def encrypt(self, text: str) -> str:
        """Encrypt a secret for its row."""
        return cipher(_PURPOSE).encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """Decrypt a secret; raises ValidationError if SECRET_KEY has changed now."""
        try:
            return cipher(_PURPOSE).decrypt(encrypted_text.encode()).decode()
        except InvalidToken as error:
            logger.error("a second factor was encrypted with another SECRET_KEY")  # noqa: TRY400 the trace says no more
            raise self.validation_error("incorrect_code") from error

    def get_totp_issuer(self) -> str:
        """Return the name of this server in authenticator apps, which read `:` as its end."""
        return given_name().replace(":", " ") or _host()

    def get_totp_label(self, user: AbstractBaseUser) -> str:
        """Return the name of an account in authenticator apps."""
        return name_of(user)

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        """Return the host that passkeys are for, whatever the request's Host is."""
        return {"id": _host(), "name": site_name()}

    def get_public_key_credential_user_entity(self, user: AbstractBaseUser) -> dict[str, Any]:
        """Return an account as authenticators name it, without its email address."""
        return {**super().get_public_key_credential_user_entity(user), "name": name_of(user)}

    def generate_authenticator_name(self, user: AbstractBaseUser, type: Any) -> str:  # noqa: A002 allauth's signature
        """Return the name of a passkey whose person gave it none."""
        del user, type
        return gettext("Passkey")


def _host() -> str:
    return urlsplit(settings.UAMP_ISSUER).hostname or "localhost"


def _public(path: str) -> str:
    return f"{settings.UAMP_ISSUER.rstrip('/')}{path}"
