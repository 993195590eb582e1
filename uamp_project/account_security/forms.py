"""The forms for an email address and a forgotten password."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from allauth.account.fields import EmailField
from allauth.account.forms import AddEmailForm, ResetPasswordForm, ResetPasswordKeyForm
from allauth.account.models import EmailAddress
from allauth.core import context
from django import forms
from django.utils.translation import gettext as _

from agents_app.rest.views import caller
from sessions_app.access import rates
from uamp_project.sign_in.devices import known_device
from uamp_project.sign_in.failures import client_address
from uamp_project.sign_in.quotas import TooManySignIns

if TYPE_CHECKING:
    from collections.abc import Iterable

ADDRESS_CHARS: Final = 254
PASSWORD_CHARS: Final = 4096


class TooManyMails(TooManySignIns):
    """UAMP_MAILS_PER_DAY or UAMP_MAILS_TO_ONE_PER_DAY was exceeded."""

    template = "registration/too_many_mails.html"


class EmailAddressForm(AddEmailForm):
    """A new email address of a person's account, which gets a link to confirm it."""

    email = EmailField(max_length=ADDRESS_CHARS)

    def clean_email(self) -> str:
        """Count the email after the checks of the address."""
        address: str = super().clean_email()
        requester = rates.person(caller(context.request).pk)
        _count_mails(("mails", requester), *_to(address, requester))
        return address


class ForgottenPasswordForm(ResetPasswordForm):
    """The address of an account whose password is forgotten."""

    email = EmailField(max_length=ADDRESS_CHARS)

    def clean_email(self) -> str:
        """Count the email whether or not the address has an account, which must have confirmed it.

        A browser in which the person signed in before has a count of its own, so that no one else
        can use up the mails that the person may request there (docs/adr/0013).
        """
        address: str = super().clean_email()
        rows = EmailAddress.objects.filter(user__in=self.users, verified=True)
        confirmed = {row.user_id for row in rows if row.email.lower() == address.lower()}
        self.users = [user for user in self.users if user.pk in confirmed]
        names = (user.get_username() for user in self.users)
        devices = (known_device(context.request, name) for name in names)
        if device := next(filter(None, devices), ""):
            _count_mails(("mails to one", f"device:{device}"))
        else:
            requester = rates.visitors(client_address(context.request) or "")
            _count_mails(("mails", requester), *_to(address, requester))
        return address


class NewPasswordForm(ResetPasswordKeyForm):
    """The new password behind the link in an email."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("password1", "password2"):
            self.fields[name].validators.append(_short)


def _short(password: str) -> None:
    if len(password) > PASSWORD_CHARS:
        raise forms.ValidationError(_("This password is too long."))


def _to(address: str, requester: str) -> Iterable[tuple[str, str]]:
    """Return the counts of a recipient: of this requester alone, then of all together."""
    recipient = hashlib.sha256(address.lower().encode()).hexdigest()[:32]
    return ("mails to one", f"{requester} mail:{recipient}"), ("mails", f"mail:{recipient}")


def _count_mails(*counts: tuple[str, str]) -> None:
    """Count an email under each kind and name, up to the first that is used up: TooManyMails."""
    for kind, name in counts:
        quota = rates.limiter().hit(kind, name)
        if not quota.allowed:
            raise TooManyMails(quota)
