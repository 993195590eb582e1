"""How a receiver knows that a body is from this server, and unchanged.

Every attempt has a JWT, signed with the first key of /.well-known/jwks.json: `aud` is the address
of the receiver, `jti` the delivery, `exp` five minutes away, and `request_body_sha256` the hash of
the body in hex. Where the webhook has a secret of its own, that signs too, as Standard Webhooks 1.0
has it (https://www.standardwebhooks.com): HMAC-SHA256 of `id.timestamp.body`.
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
SECRET_PREFIX: Final = "whsec_"  # noqa: S105 how every secret begins
SECRET_BYTES: Final = 32


def sign(body: bytes, *, url: str, delivery: str, about: dict[str, str]) -> str:
    """Return the JWT of one attempt; `about` are claims that name what the body is of.

    Raises OSError and ValueError for a bad key file.
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
    """Return a secret: `whsec_` and 32 random bytes in base64."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def symmetric(body: bytes, *, event_id: str, at: int, keys: Iterable[str]) -> str:
    """Return `webhook-signature`: one `v1,<base64>` for each secret, separated by spaces.

    `at` is in Unix seconds. Raises ValueError for a secret that is not one of `new_secret`.
    """
    signed = f"{event_id}.{at}.".encode() + body
    return " ".join(f"v1,{_mac(signed, key)}" for key in keys)


def _mac(signed: bytes, key: str) -> str:
    try:
        raw = base64.b64decode(key.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError("The secret is not in base64.") from error
    return base64.b64encode(hmac.digest(raw, signed, "sha256")).decode()
