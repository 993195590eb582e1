"""The lookup of stored API keys: of one, which most requests start with, or of actors. Synchronous.

Django builds the statement only once, since building it costs ten times as much as running it.
"""

from __future__ import annotations

import json
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import connection
from django.utils import timezone

from agents_app.rest.rights import Rights
from sessions_app.models import KEY_CREDENTIAL, ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime


class StoredKey(NamedTuple):
    """A key and its owner."""

    pk: int
    sha256: str
    revoked_at: datetime | None
    expires_at: datetime | None
    used_at: datetime | None
    user_id: int
    username: str
    is_active: bool
    rights: Rights
    version: int
    previous_sha256: str
    previous_until: datetime | None


def find_key(prefix: str) -> StoredKey | None:
    """Return the key with a prefix."""
    with connection.cursor() as cursor:
        cursor.execute(_statement(connection.vendor), [prefix])
        row = cursor.fetchone()
    if row is None:
        return None
    pk, sha256, revoked_at, expires_at, used_at, user_id, *rest = row
    version, previous_sha256, previous_until, has_budget, *narrowed, username, is_active = rest
    return StoredKey(
        pk=pk,
        sha256=sha256,
        revoked_at=_moment(revoked_at),
        expires_at=_moment(expires_at),
        used_at=_moment(used_at),
        user_id=user_id,
        username=username,
        is_active=is_active,
        rights=_rights(*narrowed, has_budget=bool(has_budget)),
        version=version,
        previous_sha256=previous_sha256,
        previous_until=_moment(previous_until),
    )


def ended_actors(actors: Iterable[tuple[str, int]]) -> set[tuple[str, int]]:
    """Return those of these credentials, each with the version of a secret, that end their tokens.

    As in `Principal.actors`: keys that are revoked, expired or of a deactivated person, and secrets
    that were replaced.
    """
    pairs = set(actors)
    if not pairs:
        return pairs
    rows = ApiKey.objects.filter(revoked_at__isnull=True, user__is_active=True)
    keys = rows.exclude(expires_at__lte=timezone.now()).in_bulk(
        [name.removeprefix(KEY_CREDENTIAL) for name, _ in pairs]
    )
    return {
        (name, version)
        for name, version in pairs
        if (key := keys.get(int(name.removeprefix(KEY_CREDENTIAL)))) is None
        or not key.accepts(version)
    }


def owner_of_key(actor: tuple[str, int]) -> int | None:
    """Return the person whose key is one of `Principal.actors`; None if the key was deleted."""
    rows = ApiKey.objects.filter(pk=int(actor[0].removeprefix(KEY_CREDENTIAL)))
    return rows.values_list("user_id", flat=True).first()


@lru_cache(maxsize=1024)
def _rights(
    scopes: str, chats: str | None, agents: str | None, protocols: str | None, *, has_budget: bool
) -> Rights:
    """Return a key's rights from its columns, which are JSON texts."""
    return Rights(
        scopes=_names(scopes) or frozenset(),
        chats=_names(chats),
        agents=_names(agents),
        protocols=_names(protocols),
        has_budget=has_budget,
    )


def _names(text: str | None) -> frozenset[str] | None:
    names = None if text is None else json.loads(text)
    return None if names is None else frozenset(names)


def _moment(value: Any) -> Any:
    """Convert a column to a time as Django does; SQLite has no time zones."""
    if connection.vendor != "sqlite":
        return value
    operations: Any = connection.ops
    return operations.convert_datetimefield_value(value, None, connection)


@cache
def _statement(vendor: str) -> str:
    del vendor  # the statement is in the vendor's dialect
    fields = (
        "pk", "sha256", "revoked_at", "expires_at", "used_at", "user_id", "version",
        "previous_sha256", "previous_until", "has_budget", "scopes", "chats", "agents",
        "protocols", "user__username", "user__is_active",
    )  # fmt: skip
    keys = ApiKey.objects.filter(prefix="").values_list(*fields)
    return str(keys.query.sql_with_params()[0])
