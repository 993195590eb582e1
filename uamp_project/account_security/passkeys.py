"""Passkeys (WebAuthn): adding one, and signing in or confirming with one.

django-allauth verifies the responses of authenticators with Yubico's fido2. What a browser sends is
bounded here, and of a new passkey only the parts that are needed later are stored.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from allauth.core import context
from allauth.mfa.adapter import get_adapter
from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.forms import (
    AddWebAuthnForm,
    AuthenticateWebAuthnForm,
    LoginWebAuthnForm,
    ReauthenticateWebAuthnForm,
)
from allauth.mfa.webauthn.internal import auth
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from django import forms
from django.conf import settings
from django.utils.translation import gettext as _
from fido2.utils import websafe_encode

from uamp_project.sign_in.failures import client_address
from uamp_project.sign_in.quotas import count_attempt

CREDENTIAL_CHARS: Final = 16_384
NAME_CHARS: Final = 80
# What the parsers and verifiers raise for a response that is malformed or not of this passkey.
_REFUSALS: Final = (
    AttributeError, IndexError, InvalidSignature, KeyError, NotImplementedError, RecursionError,
    TypeError, UnsupportedAlgorithm, ValueError, struct.error,
)  # fmt: skip


class _CredentialField(forms.JSONField):
    """The JSON object of an authenticator, which the page's script puts into a hidden field."""

    widget = forms.HiddenInput

    def to_python(self, value: Any) -> Any:
        """Return the object; reject anything else, and what is too long or too deep."""
        refusal = get_adapter().validation_error("incorrect_code")
        if isinstance(value, str) and len(value) > CREDENTIAL_CHARS:
            raise refusal
        try:
            credential = super().to_python(value)
        except RecursionError as error:
            raise refusal from error
        if credential is not None and not isinstance(credential, dict):
            raise refusal
        return credential


class NewPasskeyForm(AddWebAuthnForm):
    """A new passkey: its name, and what the authenticator answered."""

    name = forms.CharField(required=False, max_length=NAME_CHARS)
    credential = _CredentialField()
    passwordless = None  # type: ignore[assignment]  # Django's way to remove a field

    def clean(self) -> dict[str, Any]:
        """Verify the answer; the authenticator must have verified the person."""
        values = self.cleaned_data
        if "credential" not in values:
            return values
        rows = Authenticator.objects.filter(user=self.user, type=Authenticator.Type.WEBAUTHN)
        if rows.count() >= settings.UAMP_PASSKEYS_PER_USER:
            raise forms.ValidationError(_("You have too many passkeys. Remove one first."))
        try:
            parsed = auth.parse_registration_response(values["credential"])
            binding = auth.complete_registration(values["credential"])
            is_verified = binding.is_user_verified()
        except _REFUSALS as error:
            raise get_adapter().validation_error("incorrect_code") from error
        if not is_verified:
            raise get_adapter().validation_error("incorrect_code")
        credential_id = websafe_encode(parsed.raw_id)
        values["credential"] = {
            "id": credential_id,
            "rawId": credential_id,
            "type": "public-key",
            "response": {
                "clientDataJSON": websafe_encode(bytes(parsed.response.client_data)),
                "attestationObject": websafe_encode(bytes(parsed.response.attestation_object)),
            },
            "clientExtensionResults": {"credProps": {"rk": True}},
        }
        return values


class _PasskeyForm(AuthenticateWebAuthnForm):
    """The answer of an authenticator to a challenge of this session."""

    credential = _CredentialField()

    def clean_credential(self) -> Authenticator:
        """Return the row of the passkey; raises TooManySignIns.

        Wrong answers do not pause the account, because no one can guess a right one.
        """
        request = context.request
        name = self.user.get_username() if self.user is not None else client_address(request)
        count_attempt(request, name)
        try:
            return super().clean_credential()
        except forms.ValidationError:
            auth.clear_state()
            raise
        except _REFUSALS as error:
            auth.clear_state()
            raise get_adapter().validation_error("incorrect_code") from error


class SignInPasskeyForm(_PasskeyForm):
    """A passkey as the second factor."""


class ConfirmPasskeyForm(_PasskeyForm, ReauthenticateWebAuthnForm):
    """A passkey of a signed-in person, before a change."""


class OnlyPasskeyForm(_PasskeyForm, LoginWebAuthnForm):
    """A passkey in place of name and password."""
