"""The JWT with which a receiver knows that a body is from this server, and unchanged.

It is signed with the first key of /.well-known/jwks.json. `aud` is the receiver's address, `jti`
the delivery, `exp` five minutes away, and `request_body_sha256` the hash of the body in hex.
"""

from __future__ import annotations

import hashlib
import time
from typing import Final

import jwt
from django.conf import settings

from payments_app.tokens.signing_keys import signing_keys

SECONDS: Final = 300
TYPE: Final = "webhook+jwt"


def sign(body: bytes, *, url: str, delivery: str, response_id: str) -> str:
    """Return the JWT of one attempt; raises OSError and ValueError for a bad key file."""
    key = signing_keys()[0]
    now = int(time.time())
    claims = {
        "iss": settings.UAMP_ISSUER,
        "aud": url,
        "iat": now,
        "exp": now + SECONDS,
        "jti": delivery,
        "taskId": response_id,
        "request_body_sha256": hashlib.sha256(body).hexdigest(),
    }
    headers = {"kid": key.kid, "typ": TYPE}
    return jwt.encode(claims, key.private, algorithm=key.algorithm, headers=headers)
