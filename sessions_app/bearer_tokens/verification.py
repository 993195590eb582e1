"""Verification of signed tokens (RFC 7519, RFC 8725) against their issuer's settings only.

The issuer comes from the settings, the key from the issuer's own set, and the algorithm from the
key. A token can choose none of them, nor name the address of a key.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import jwt
from django.conf import settings

import uamp

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sessions_app.bearer_tokens.jwks import PublicKey

TOKEN_BYTES: Final = 8 * 1024
KID_CHARS: Final = 256
NAME_CHARS: Final = 255
LIFETIME_SECONDS: Final = 3600
"""Tokens with a longer lifetime (`exp` minus `iat`) are rejected."""
_PARTS: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_NAMES_A_KEY: Final = ("jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256")


class TokenInvalid(Exception):
    """The token is not valid here; the message is for the log, not for the client."""


class TokenExpired(TokenInvalid):
    """The token was valid but has expired."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Header:
    """The header of an unverified token; nothing in it is trusted."""

    kid: str
    algorithm: str
    type: str
    issuer: str


def looks_signed(token: str) -> bool:
    """Return whether a credential has the form of a JWT."""
    return len(token) <= TOKEN_BYTES and _PARTS.fullmatch(token) is not None


def read_header(token: str) -> Header:
    """Return the header and issuer of a token; raises TokenInvalid."""
    if not looks_signed(token):
        raise TokenInvalid("no JWT, or more than 8 KiB")
    header, claims = (_object(part) for part in token.split(".")[:2])
    if named := [name for name in _NAMES_A_KEY if name in header]:
        raise TokenInvalid(f"it names its own key ({named[0]})")
    if "crit" in header or "b64" in header:
        raise TokenInvalid("it has a critical extension")
    kid, algorithm, kind = header.get("kid"), header.get("alg"), header.get("typ")
    issuer = claims.get("iss")
    if not isinstance(kid, str) or not 0 < len(kid) <= KID_CHARS:
        raise TokenInvalid("its kid is missing or too long")
    if not isinstance(algorithm, str) or not isinstance(kind, str) or not isinstance(issuer, str):
        raise TokenInvalid("it has no alg, typ or iss")
    kind = kind.lower().removeprefix("application/")
    return Header(kid=kid, algorithm=algorithm, type=kind, issuer=issuer)


def verify(
    token: str,
    key: PublicKey,
    *,
    header: Header,
    algorithms: Iterable[str],
    types: Iterable[str],
    issuer: str,
    audience: Iterable[str] | None,
) -> dict[str, Any]:
    """Return the claims of a valid token; raises TokenInvalid or TokenExpired.

    Without an `audience`, `aud` must be present and the caller checks it.
    """
    if header.algorithm != key.algorithm or key.algorithm not in set(algorithms):
        raise TokenInvalid(f"its algorithm {header.algorithm!r} does not match the key")
    if header.type not in {kind.lower() for kind in types}:
        raise TokenInvalid(f"its type {header.type!r} is not the type of an access token")
    try:
        claims: dict[str, Any] = jwt.decode(
            token,
            key.key,
            algorithms=[key.algorithm],
            audience=None if audience is None else list(audience),
            issuer=issuer,
            leeway=settings.UAMP_JWT_LEEWAY_SECONDS,
            options={
                "require": ["exp", "iat", "iss", "aud", "sub"],
                "verify_aud": audience is not None,
            },
        )
    except jwt.ExpiredSignatureError as error:
        raise TokenExpired("it has expired") from error
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError) as error:
        raise TokenInvalid(str(error)) from error
    subject = claims["sub"]
    if not isinstance(subject, str) or not 0 < len(subject) <= NAME_CHARS or "\0" in subject:
        raise TokenInvalid("its subject cannot be used")
    if not 0 < float(claims["exp"]) - float(claims["iat"]) <= LIFETIME_SECONDS:
        raise TokenInvalid("it lasts for more than an hour")
    return claims


def expiry(claims: dict[str, Any]) -> datetime:
    """Return the time at which a token expires."""
    return datetime.fromtimestamp(float(claims["exp"]), UTC)


def scopes_in(claims: dict[str, Any]) -> frozenset[str] | None:
    """Return the scopes of a token (`scope` or `scp`); None without such a claim."""
    for name in ("scope", "scp"):
        match claims.get(name):
            case str() as text:
                return frozenset(text.split())
            case list() as listed:
                return frozenset(scope for scope in listed if isinstance(scope, str))
    return None


def _object(part: str) -> dict[str, Any]:
    try:
        raw = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
        value = uamp.load_json(raw, exact=True)
    except (binascii.Error, ValueError, uamp.RemoteProtocolError) as error:
        raise TokenInvalid("a part cannot be read") from error
    if not isinstance(value, dict):
        raise TokenInvalid("a part is not a JSON object")
    return value
