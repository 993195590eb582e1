"""Codes of authenticator apps (RFC 6238) and recovery codes.

A code is accepted once: its row stores the counter of the last one, and no earlier counter counts.
Wrong codes pause signing in like wrong passwords.
"""

from __future__ import annotations

import base64
import hmac
import time
from typing import Any, Final

from allauth.core import context
from allauth.mfa.adapter import get_adapter
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.forms import ActivateTOTPForm
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.hotp import HOTP
from django import forms
from django.db import transaction
from django.utils.translation import gettext_lazy as _

from uamp_project.sign_in.attempts import SignInPaused, begin_attempt, fail_attempt

DIGITS: Final = 6
SECONDS: Final = 30
CODE_CHARS: Final = 20
_COUNTER: Final = "counter"


def matching_counter(secret: str, code: str, *, after: int = -1) -> int | None:
    """Return the counter of a code: of the current period, the one before or the one after.

    Counters up to `after` do not match.
    """
    hotp = HOTP(base64.b32decode(secret), DIGITS, SHA1())  # noqa: S303 RFC 6238; apps know no other
    now = int(time.time()) // SECONDS
    digits = code.replace(" ", "").encode()
    for counter in range(now - 1, now + 2):
        if counter > after and hmac.compare_digest(hotp.generate(counter), digits):
            return counter
    return None


def accept(row: Authenticator, code: str) -> bool:
    """Return whether a code of this row is right, and use it up. In a transaction, row locked."""
    if row.type == Authenticator.Type.RECOVERY_CODES:
        return bool(row.wrap().validate_code(code))
    secret = get_adapter().decrypt(row.data["secret"])
    counter = matching_counter(secret, code, after=row.data.get(_COUNTER, -1))
    if counter is None:
        return False
    use_up(row, counter)
    return True


def use_up(row: Authenticator, counter: int) -> None:
    """Store that the code of a counter, and earlier ones, are used."""
    row.data[_COUNTER] = counter
    row.save(update_fields=["data"])


class _CodeForm(forms.Form):
    """A code of a person's app, or a recovery code."""

    user: Any
    code = forms.CharField(
        label=_("Code"),
        max_length=CODE_CHARS,
        widget=forms.TextInput(attrs={"autocomplete": "one-time-code"}),
    )

    def clean_code(self) -> str:
        """Reject a wrong or used code; raises TooManySignIns."""
        request, name = context.request, self.user.get_username()
        wrong = get_adapter().validation_error("incorrect_code")
        try:
            begin_attempt(request, name)
        except SignInPaused:
            raise wrong from None
        code: str = self.cleaned_data["code"]
        with transaction.atomic():
            rows = Authenticator.objects.select_for_update(no_key=True).filter(user_id=self.user.pk)
            rows = rows.exclude(type=Authenticator.Type.WEBAUTHN)
            row = next((row for row in rows.order_by("-type") if accept(row, code)), None)
        if row is None:
            fail_attempt(request, name)
            raise wrong
        row.refresh_from_db()
        row.user = self.user
        self.authenticator = row
        return code


class SignInCodeForm(_CodeForm, AuthenticateForm):
    """The second factor of a person who is signing in."""


class ConfirmCodeForm(_CodeForm, ReauthenticateForm):
    """The second factor of a signed-in person, before a change."""


class NewAppForm(ActivateTOTPForm):
    """The first code of a new app."""

    code = forms.CharField(
        label=_("Code"),
        max_length=CODE_CHARS,
        widget=forms.TextInput(attrs={"autocomplete": "one-time-code", "inputmode": "numeric"}),
    )
    counter: int

    def clean_code(self) -> str:
        """Reject a code that is not of the secret on the page."""
        code: str = self.cleaned_data["code"]
        counter = matching_counter(self.secret, code)
        if counter is None:
            raise get_adapter().validation_error("incorrect_code")
        self.counter = counter
        return code
