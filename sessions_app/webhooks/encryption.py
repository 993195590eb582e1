"""Encryption at rest of secrets that clients provide for their receivers."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec
from cryptography.fernet import InvalidToken

from signing_app.encryption import cipher

if TYPE_CHECKING:
    from collections.abc import Mapping

logger = logging.getLogger(__name__)

_PURPOSE = "sessions_app.webhooks"


def encrypted(secrets: Mapping[str, str]) -> str:
    """Encrypt secrets as a text that only this server can read; "" if there are none."""
    return cipher(_PURPOSE).encrypt(msgspec.json.encode(secrets)).decode() if secrets else ""


def decrypted(text: str) -> dict[str, str]:
    """Decrypt secrets; returns none, and logs it, if the key is gone."""
    if not text:
        return {}
    try:
        return msgspec.json.decode(cipher(_PURPOSE).decrypt(text.encode()), type=dict[str, str])
    except InvalidToken:
        logger.exception("the secrets of a webhook cannot be read: SECRET_KEY has changed")
        return {}
