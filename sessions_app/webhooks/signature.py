"""Signatures that prove a webhook body to be from this server, and unmodified.

Every attempt has a JWT signed with the first key of /.well-known/jwks.json: `aud` is the receiver's
address, `jti` the delivery, `exp` five minutes ahead, and `request_body_sha256` the body's hash in
hex. A webhook with its own secret also gets a Standard Webhooks 1.0 signature
(https://www.standardwebhooks.com): HMAC-SHA256 of `id.timestamp.body`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from typing import TYPE_CHECKING, Final

import jwt
from django.conf import settings

from signing_app.server_keys import server_keys

if TYPE_CHECKING:
    from collections.abc import Iterable

SECONDS: Final = 300
TYPE: Final = "webhook+jwt"
SECRET_PREFIX: Final = "whsec_"  # noqa: S105 a prefix, not a secret
SECRET_BYTES: Final = 32


def sign(body: bytes, *, url: str, delivery: str, about: dict[str, str]) -> str:
    """Return the JWT for an attempt; `about` are claims that identify the body's subject.

    Raises OSError and ValueError if a key file is bad.
    """
    key = server_keys()[0]
    now = int(time.time())
    claims = {
        "iss": settings.UAMP_ISSUER,
        "aud": url,
        "iat": now,
        "exp": now + SECONDS,
        "jti": delivery,
        **about,
        "request_body_sha256": hashlib.sha256(body).hexdigest(),
    }
    headers = {"kid": key.kid, "typ": TYPE}
    return jwt.encode(claims, key.private, algorithm=key.algorithm, headers=headers)


def new_secret() -> str:
    """Return a new secret: `whsec_` and 32 random bytes in base64."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def symmetric(body: bytes, *, event_id: str, at: int, keys: Iterable[str]) -> str:
    """Return `webhook-signature`: one `v1,<base64>` per secret, separated by spaces.

    `at` is in Unix seconds. Raises ValueError for a secret not created by `new_secret`.
    """
    signed = f"{event_id}.{at}.".encode() + body
    return " ".join(f"v1,{_mac(signed, key)}" for key in keys)


def _mac(signed: bytes, key: str) -> str:
    try:
        raw = base64.b64decode(key.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError("The secret is not in base64.") from error
    return base64.b64encode(hmac.digest(raw, signed, "sha256")).decode()
