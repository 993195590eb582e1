"""The public halves of the keys, published as JSON Web Key Sets (RFC 7517 §5).

A retired key stays in its set, with `iat` and `exp`, the times in seconds between which it signed,
as OpenID Federation defines for historical keys. A withdrawn key is left out. `uamp_owner` states
what a key signs: readers reject an answer signed by the key of another agent, of the server or of
logs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import jwt
from django.db.models import Q

from signing_app.models import PublishedKey
from signing_app.server_keys import server_keys
from uamp.signatures import agent_owner

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models import QuerySet

SERVER: Final = "server"
"""The owner of the keys that sign tokens."""

KID_CHARS: Final = 256
"""A longer key id cannot be one of ours."""


MAX_AGENT_KEYS: Final = 1000
"""How many keys of agents the full set lists; requests by id or owner return older ones, too."""


def all_keys() -> dict[str, list[dict[str, Any]]]:
    """Return the keys of the server, those of all other purposes, and the newest of agents."""
    of_agents = Q(owner__startswith=agent_owner(""))
    others = _rows(PublishedKey.objects.exclude(of_agents))
    agents = _rows(PublishedKey.objects.filter(of_agents), MAX_AGENT_KEYS)
    return {"keys": [*_server(), *others, *agents]}


def keys_of(owner: str) -> dict[str, list[dict[str, Any]]]:
    """Return the keys of the server and of one owner."""
    return {"keys": [*_server(), *_rows(PublishedKey.objects.filter(owner=owner))]}


def kid_of(signature: str) -> str:
    """Return the key id in the header of a compact JWS, unverified; "" if it names none."""
    try:
        return str(jwt.get_unverified_header(signature).get("kid", ""))
    except jwt.InvalidTokenError:
        return ""


def keys_named(kids: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the keys with these ids; unpublished ones are left out."""
    ids = {kid for kid in kids if len(kid) <= KID_CHARS and "\0" not in kid}
    server = [key for key in _server() if key["kid"] in ids]
    return {"keys": [*server, *_rows(PublishedKey.objects.filter(pk__in=ids))]}


def _server() -> list[dict[str, Any]]:
    return [{**key.jwk, "uamp_owner": SERVER} for key in server_keys()]


def _rows(keys: QuerySet[PublishedKey], limit: int | None = None) -> list[dict[str, Any]]:
    rows = keys.filter(withdrawn_at__isnull=True).order_by("-created_at", "kid")
    return [_jwk(row) for row in rows[:limit]]


def _jwk(row: PublishedKey) -> dict[str, Any]:
    times = {"iat": int(row.created_at.timestamp())}
    if row.retired_at is not None:
        times["exp"] = int(row.retired_at.timestamp())
    return {**row.jwk, "uamp_owner": row.owner, **times}
