"""The access tokens that this server issues to agents and programs (AOAuth).

A token's audience (`aud`) is one agent of this server (`<UAMP_ISSUER>/agents/<name>`) or the server
itself (UAMP_ISSUER). It is valid for five minutes, grants no more than the credential that
requested it, and ends with that credential's secret: `client_id` is its key, `key_version` says
which of its secrets. It also ends with the secrets of those who passed it on (`act`). Tokens are
signed with the keys of payment tokens, which have another `typ`.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

import jwt
from django.conf import settings

from sessions_app.bearer_tokens import verification
from sessions_app.bearer_tokens.jwks import PublicKey
from sessions_app.bearer_tokens.verification import TokenInvalid
from signing_app import server_keys

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

LIFETIME_SECONDS: Final = 300
TYPE: Final = "at+jwt"
MAX_DELEGATIONS: Final = 5
"""How many times a token may be exchanged for another."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AccessGrant:
    """The claims of a token: its owner, its purpose, and the credential used to request it.

    `agent` is the name of the only agent it is for, or "". `key_id` and `key_version` identify the
    API key; they are 0 if there is none. `actors` are those who passed it on and `identity_id` is
    the identity at another issuer, as in `Principal`.
    """

    user_id: int
    scopes: frozenset[str]
    agent: str = ""
    key_id: int
    key_version: int
    actors: tuple[tuple[str, int], ...] = ()
    identity_id: int | None = None
    expires_at: datetime | None = None


def issue(grant: AccessGrant) -> tuple[str, int]:
    """Return a new token and its lifetime in seconds."""
    now = int(time.time())
    lasts = LIFETIME_SECONDS
    if grant.expires_at is not None:
        # Never longer than the token that it was derived from.
        lasts = min(lasts, int(grant.expires_at.timestamp()) - now)
    claims: dict[str, Any] = {
        "iss": settings.UAMP_ISSUER,
        "sub": f"user:{grant.user_id}",
        "aud": audience(grant.agent),
        "iat": now,
        "nbf": now,
        "exp": now + lasts,
        "jti": uuid.uuid4().hex,
        "scope": " ".join(sorted(grant.scopes)),
        "client_id": f"key:{grant.key_id}",
        "key_version": grant.key_version,
        "token_type": "Bearer",
        "agent_path": "/agents",
    }
    if grant.actors:
        claims["act"] = _nested(grant.actors)
        claims["act_key_versions"] = [version for _, version in grant.actors]
    if grant.identity_id is not None:
        claims["identity"] = grant.identity_id
    key = server_keys.server_keys()[0]
    headers = {"kid": key.kid, "typ": TYPE}
    return jwt.encode(claims, key.private, algorithm=key.algorithm, headers=headers), lasts


def is_ours(header: verification.Header) -> bool:
    """Return whether a token claims to be issued by this server."""
    return header.issuer == settings.UAMP_ISSUER


def verify(token: str, header: verification.Header) -> AccessGrant:
    """Return the claims of this server's token; raises TokenInvalid or TokenExpired."""
    key = server_keys.server_key(header.kid)
    if key is None:
        raise TokenInvalid("this server has no such key")
    claims = verification.verify(
        token,
        PublicKey(algorithm=key.algorithm, key=key.private.public_key()),
        header=header,
        algorithms=[key.algorithm],
        types=[TYPE],
        issuer=settings.UAMP_ISSUER,
        audience=None,
    )
    try:
        return AccessGrant(
            user_id=int(claims["sub"].removeprefix("user:")),
            scopes=verification.scopes_in(claims) or frozenset(),
            agent=agent_in(claims["aud"]),
            key_id=int(claims["client_id"].removeprefix("key:")),
            key_version=int(claims["key_version"]),
            actors=tuple(
                (actor, int(version))
                for actor, version in zip(
                    _actors(claims.get("act")), claims.get("act_key_versions", ()), strict=True
                )
            ),
            identity_id=None if (identity := claims.get("identity")) is None else int(identity),
            expires_at=verification.expiry(claims),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TokenInvalid("it is not an access token") from error


def audience(agent: str) -> str:
    """Return the audience of tokens for an agent or, without one, for the server."""
    path = f"/agents/{quote(agent, safe='')}" if agent else ""
    return f"{settings.UAMP_ISSUER}{path}"


def agent_in(target: str) -> str:
    """Return the agent that an audience names, or ""; raises ValueError for other servers."""
    target = target.rstrip("/")
    if target == settings.UAMP_ISSUER.rstrip("/"):
        return ""
    prefix = f"{settings.UAMP_ISSUER}/agents/"
    name = unquote(target.removeprefix(prefix))
    if not target.startswith(prefix) or not name or "/" in name:
        raise ValueError("It is not an address of this server or of one of its agents.")
    return name


def _nested(actors: tuple[tuple[str, int], ...]) -> dict[str, Any]:
    (credential, _), *rest = actors
    return {"sub": credential, **({"act": _nested(tuple(rest))} if rest else {})}


def _actors(act: Mapping[str, Any] | None) -> list[str]:
    actors = []
    while act is not None:
        actors.append(str(act["sub"]))
        act = act.get("act")
    return actors
