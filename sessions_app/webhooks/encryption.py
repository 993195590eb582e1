"""Secrets that a client gives for its receiver, encrypted at rest (Fernet).

The key is derived from SECRET_KEY; SECRET_KEY_FALLBACKS still decrypt what older keys encrypted.
"""

from __future__ import annotations

import base64
import logging
from typing import TYPE_CHECKING

import msgspec
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.utils.encoding import force_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

logger = logging.getLogger(__name__)

_PURPOSE = b"sessions_app.webhooks"


def encrypted(secrets: Mapping[str, str]) -> str:
    """Return secrets as a text that only this server reads; '' for none."""
    return _keys().encrypt(msgspec.json.encode(secrets)).decode() if secrets else ""


def decrypted(text: str) -> dict[str, str]:
    """Return the secrets of a text; none where its key is gone, which the log says."""
    if not text:
        return {}
    try:
        return msgspec.json.decode(_keys().decrypt(text.encode()), type=dict[str, str])
    except InvalidToken:
        logger.exception("the secrets of a webhook cannot be read: SECRET_KEY is another one")
        return {}


def _keys() -> MultiFernet:
    secrets = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return MultiFernet([Fernet(_derived(secret)) for secret in secrets])


def _derived(secret: str | bytes) -> bytes:
    derivation = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=_PURPOSE)
    return base64.urlsafe_b64encode(derivation.derive(force_bytes(secret)))
