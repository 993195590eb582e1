"""The forms for a mail address and a forgotten password."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from allauth.account.fields import EmailField
from allauth.account.forms import AddEmailForm, ResetPasswordForm, ResetPasswordKeyForm
from allauth.core import context
from django import forms
from django.utils.translation import gettext as _

from agents_app.rest.views import caller
from sessions_app.access import rates
from uamp_project.sign_in.failures import client_address
from uamp_project.sign_in.quotas import TooManySignIns

ADDRESS_CHARS: Final = 254
PASSWORD_CHARS: Final = 4096


class TooManyMails(TooManySignIns):
    """A person, an address or a recipient exceeded UAMP_MAILS_PER_DAY."""

    template = "registration/too_many_mails.html"


class EmailAddressForm(AddEmailForm):
    """A new mail address of a person's account, which gets a link to confirm it."""

    email = EmailField(max_length=ADDRESS_CHARS)

    def clean_email(self) -> str:
        """Count the mail after the checks of the address."""
        address: str = super().clean_email()
        _count_mail(address, rates.person(caller(context.request).pk))
        return address


class ForgottenPasswordForm(ResetPasswordForm):
    """The address of an account whose password is forgotten."""

    email = EmailField(max_length=ADDRESS_CHARS)

    def clean_email(self) -> str:
        """Count the mail whether or not the address has an account."""
        address: str = super().clean_email()
        _count_mail(address, rates.visitors(client_address(context.request) or ""))
        return address


class NewPasswordForm(ResetPasswordKeyForm):
    """The new password behind the link in a mail."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("password1", "password2"):
            self.fields[name].validators.append(_short)


def _short(password: str) -> None:
    if len(password) > PASSWORD_CHARS:
        raise forms.ValidationError(_("This password is too long."))


def _count_mail(address: str, requester: str) -> None:
    """Count a mail by who requests it and by its recipient; raises TooManyMails."""
    recipient = hashlib.sha256(address.lower().encode()).hexdigest()[:32]
    for name in (requester, f"mail:{recipient}"):
        quota = rates.limiter().hit("mails", name)
        if not quota.allowed:
            raise TooManyMails(quota)
