"""The two forms of a payment token: `ptok_…`, and a JWT signed by this server.

A JWT is verified with the key of ours that its `kid` names and with that key's own algorithm; the
token's `alg`, `jwk`, `jku` and `x5u` are ignored. `iss` is this server. The keys also sign access
tokens and webhooks, so the header's `typ` has to be TYPE. The amount in the token is the balance at
the time of signing; the account has the current one.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import jwt
from django.conf import settings

from signing_app.server_keys import server_key, server_keys
from uamp.types.inline_media import decode_base64

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from payments_app.money import Money

OPAQUE: Final = "ptok_"
TYPE: Final = "payment+jwt"
"""The `typ` of the header (RFC 8725 §3.11)."""
SECRET_CHARS: Final = 8192
"""A longer secret cannot be one of our tokens."""
MAX_DEPTH: Final = 5
"""How often a token may be passed on."""
_JWT_DOTS: Final = 2


class BadSecret(ValueError):
    """The secret is not a token of this server; the message is for a person."""


class ExpiredSecret(BadSecret):
    """The token was valid until it expired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """The claims of a JWT about its token, at the time of signing."""

    token_id: str
    owner_id: int | None
    audience: Sequence[str]
    issued_at: datetime
    expires_at: datetime | None
    balance: Money
    depth: int


def opaque_secret(token_id: str, salt: str) -> str:
    """Return the secret of an opaque token; needs both the row and the server's key."""
    digest = hmac.new(
        settings.SECRET_KEY.encode(), f"payment-token:{token_id}:{salt}".encode(), hashlib.sha256
    ).digest()
    return OPAQUE + base64.urlsafe_b64encode(digest).decode().rstrip("=")


def hash_of(secret: str) -> str:
    """Return the stored hash of an opaque secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def sign(claims: Claims) -> str:
    """Return the JWT of a token, signed with the first key."""
    key = server_keys()[0]
    payload: dict[str, Any] = {
        "iss": settings.UAMP_ISSUER,
        "sub": "" if claims.owner_id is None else str(claims.owner_id),
        "iat": int(claims.issued_at.timestamp()),
        "jti": claims.token_id,
        "payment": {
            # A number, for clients that expect one; the string beside it is exact.
            "balance": float(str(claims.balance)),
            "balance_exact": str(claims.balance),
            "currency": claims.balance.asset,
            "scheme": "token",
            "max_depth": MAX_DEPTH - claims.depth,
        },
    }
    if claims.audience:
        payload["aud"] = list(claims.audience)
    if claims.expires_at is not None:
        payload["exp"] = int(claims.expires_at.timestamp())
    return key.sign(payload, typ=TYPE)


def token_id_of(secret: str) -> tuple[str, str]:
    """Return ("sha256", hash) for an opaque secret or ("id", jti) for a JWT.

    Either may be in base64. Raises BadSecret, and ExpiredSecret for a valid but expired JWT.
    """
    secret = secret.strip()
    if not 0 < len(secret) <= SECRET_CHARS or not secret.isascii():
        raise BadSecret("This payment token was not issued by this server.")
    if not _is_bare(secret):
        secret = _decoded(secret)
    if secret.startswith(OPAQUE):
        return "sha256", hash_of(secret)
    return "id", _verified(secret)


def _is_bare(secret: str) -> bool:
    return secret.startswith(OPAQUE) or secret.count(".") == _JWT_DOTS


def _decoded(secret: str) -> str:
    """Return the token in a base64 text."""
    try:
        text = decode_base64(secret).decode("ascii").strip()
    except ValueError:
        raise BadSecret("This payment token was not issued by this server.") from None
    if not _is_bare(text):
        raise BadSecret("This payment token was not issued by this server.")
    return text


def _verified(encoded: str) -> str:
    try:
        header = jwt.get_unverified_header(encoded)
        if header.get("typ") != TYPE:
            raise BadSecret("This token is not for payments.")
        kid = header.get("kid")
        key = server_key(kid) if isinstance(kid, str) else None
        if key is None:
            raise BadSecret("The payment token was not signed by this server.")
        claims = jwt.decode(
            encoded,
            key.private.public_key(),
            algorithms=[key.algorithm],
            issuer=settings.UAMP_ISSUER,
            # Its row, which is read next, says who may spend it.
            options={"require": ["iss", "iat", "jti"], "verify_aud": False},
        )
    except jwt.ExpiredSignatureError:
        raise ExpiredSecret("The payment token has expired. Use a new one.") from None
    except jwt.InvalidTokenError:
        raise BadSecret("The payment token was not signed by this server.") from None
    if not isinstance(claims.get("payment"), dict):
        raise BadSecret("This token is not for payments.")
    return str(claims["jti"])
