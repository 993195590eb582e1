"""Tokens (envelope §6.2): capability tokens in envelopes, and bearer tokens signed by peers.

A receiver issues a capability token to a sender. A bearer token is an assertion that a peer signs
itself (RFC 7523), for requests without an envelope, such as the GET of a stream.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from federation_app.envelope.errors import EnvelopeCode, EnvelopeError, unauthenticated
from federation_app.envelope.limits import TOKEN_BYTES, load
from federation_app.envelope.signatures.jws import read_compact, sign_compact, verified_by
from federation_app.envelope.signatures.keys import decode64

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime

    from federation_app.envelope.signatures.keys import EnvelopeSigner, VerificationKey

CAPABILITY_TYPE: Final = "uamp-cap+jwt"
TOKEN_TYPES: Final = frozenset({CAPABILITY_TYPE, "jwt"})
LIFETIME_SECONDS: Final = 3600
LEEWAY_SECONDS: Final = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenClaims:
    """The claims of a valid token; `token_id` is "" without one."""

    issuer: str
    subject: str
    scopes: frozenset[str]
    token_id: str = ""

    def check_scope(self, intent: str) -> None:
        """Raise EnvelopeError unauthorized if the token does not cover an intent."""
        if f"uamp:{intent}" not in self.scopes:
            raise EnvelopeError(
                EnvelopeCode.UNAUTHORIZED,
                f"The token has no scope uamp:{intent}.",
                detail="scope",
            )


def issuer_of(token: str) -> str:
    """Return the issuer that a token claims, not yet verified; raises EnvelopeError."""
    issuer = _claims(token).get("iss")
    if not isinstance(issuer, str):
        raise unauthenticated("The token has no issuer.", detail="token")
    return issuer


def verify_token(
    token: str,
    *,
    audiences: Collection[str],
    now: datetime,
    keys: Iterable[VerificationKey],
    types: Collection[str] = TOKEN_TYPES,
    seconds: int = LIFETIME_SECONDS,
) -> TokenClaims:
    """Verify a token and return its claims; raises EnvelopeError unauthenticated.

    It is for one of `audiences` and lasts at most `seconds`, and its issuer must own its key.
    """
    claims, jws = _claims(token), read_compact(token, types=types)
    issuer, subject = claims.get("iss"), claims.get("sub")
    if not isinstance(issuer, str) or not isinstance(subject, str):
        raise unauthenticated("The token has no issuer or subject.", detail="token")
    issuer_keys = [key for key in keys if key.kid.partition("#")[0] == issuer]
    verified_by(jws, [decode64(jws.payload)], issuer_keys)
    claimed_audience = claims.get("aud")
    claimed = claimed_audience if isinstance(claimed_audience, list) else [claimed_audience]
    if not any(name in claimed for name in audiences):
        raise unauthenticated("The token is for another server.", detail="aud")
    _check_times(claims, now.timestamp(), seconds)
    scope, token_id = claims.get("scope", ""), claims.get("jti", "")
    scopes = scope.split() if isinstance(scope, str) else ()
    return TokenClaims(
        issuer=issuer,
        subject=subject,
        scopes=frozenset(scopes),
        token_id=token_id if isinstance(token_id, str) else "",
    )


def signed_token(
    signer: EnvelopeSigner,
    *,
    issuer: str,
    subject: str,
    audience: str | list[str],
    scope: str,
    now: datetime,
    seconds: int = 300,
    token_id: str = "",
) -> str:
    """Return a token signed by this signer, for one server or for several."""
    at = int(now.timestamp())
    claims: dict[str, Any] = {
        "iss": issuer,
        "sub": subject,
        "aud": audience,
        "scope": scope,
        "iat": at,
        "exp": at + seconds,
    }
    if token_id:
        claims["jti"] = token_id
    payload = json.dumps(claims, separators=(",", ":")).encode()
    return sign_compact(payload, signer, type_=CAPABILITY_TYPE, detached=False)


def _claims(token: str) -> dict[str, Any]:
    if len(token) > TOKEN_BYTES:
        raise unauthenticated(f"A token may have at most {TOKEN_BYTES} bytes.", detail="token")
    try:
        jws = read_compact(token, types=TOKEN_TYPES)
        claims = load(decode64(jws.payload), limit=TOKEN_BYTES)
    except EnvelopeError:
        claims = None
    if not isinstance(claims, dict):
        raise unauthenticated("The claims of the token cannot be read.", detail="token")
    return claims


def _check_times(claims: dict[str, Any], now: float, seconds: int) -> None:
    issued, expires, begins = (claims.get(name) for name in ("iat", "exp", "nbf"))
    times = (issued, expires, issued if begins is None else begins)
    if any(isinstance(moment, bool) or not isinstance(moment, int | float) for moment in times):
        raise unauthenticated("The token has no iat or exp.", detail="token")
    first, last, start = (float(moment) for moment in times if moment is not None)
    if not 0 < last - first <= seconds:
        raise unauthenticated(f"The token must be valid for 1 to {seconds} seconds.", detail="exp")
    if max(first, start) > now + LEEWAY_SECONDS or last <= now - LEEWAY_SECONDS:
        raise unauthenticated("The token has expired or is not valid yet.", detail="exp")
