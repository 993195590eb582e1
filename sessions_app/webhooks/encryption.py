"""Secrets that a client gives for its receiver, encrypted at rest."""

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
    """Return secrets as a text that only this server reads; '' for none."""
    return cipher(_PURPOSE).encrypt(msgspec.json.encode(secrets)).decode() if secrets else ""


def decrypted(text: str) -> dict[str, str]:
    """Return the secrets of a text; none where its key is gone, which the log says."""
    if not text:
        return {}
    try:
        return msgspec.json.decode(cipher(_PURPOSE).decrypt(text.encode()), type=dict[str, str])
    except InvalidToken:
        logger.exception("the secrets of a webhook cannot be read: SECRET_KEY is another one")
        return {}
