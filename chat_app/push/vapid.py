"""The server's identification to push services (RFC 8292).

Its key pair is a key of `signing_app.owner_keys`: created on first use, stored encrypted. When it
is rotated, browsers subscribe again with the new one the next time that their page opens.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from django.conf import settings

from chat_app.push.encryption import public_bytes, to_base64url
from signing_app.owner_keys import signing_key

if TYPE_CHECKING:
    from signing_app.keys import SigningKey

OWNER: Final = "push"
_SECONDS: Final = 12 * 3600


def server_key() -> SigningKey:
    """Return the current key pair, on P-256."""
    return signing_key(OWNER, "ES256")


def application_server_key(key: SigningKey) -> str:
    """Return the public half as browsers take it."""
    if not isinstance(key.private, EllipticCurvePrivateKey):
        raise TypeError(key.algorithm)
    return to_base64url(public_bytes(key.private.public_key()))


def authorization(endpoint: str, key: SigningKey) -> str:
    """Return the `Authorization` header of a request to a push service."""
    parts = urlsplit(endpoint)
    claims = {
        "aud": f"{parts.scheme}://{parts.netloc}",
        "exp": int(time.time()) + _SECONDS,
        "sub": settings.UAMP_ISSUER,
    }
    return f"vapid t={key.sign(claims)}, k={application_server_key(key)}"
