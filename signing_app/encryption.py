"""Secrets in rows, encrypted at rest (Fernet), with a separate key for each purpose.

The keys are derived from SECRET_KEY; SECRET_KEY_FALLBACKS still decrypt older secrets.
"""

from __future__ import annotations

import base64

from cryptography.fernet import Fernet, MultiFernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.utils.encoding import force_bytes


def cipher(purpose: str) -> MultiFernet:
    """Return the cipher for one purpose, which raises InvalidToken for data under another key."""
    secrets = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return MultiFernet([Fernet(_derived(secret, purpose.encode())) for secret in secrets])


def _derived(secret: str | bytes, purpose: bytes) -> bytes:
    derivation = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=purpose)
    return base64.urlsafe_b64encode(derivation.derive(force_bytes(secret)))
