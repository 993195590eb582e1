"""Connect tokens: keys that only let a daemon register one of a person's agents.

A connect token is an API key with the scope `agents:connect`, limited to one agent and to UAMP. It
is listed, rotated and revoked like any key. When it is revoked, its connections end within five
seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_app import connections
from agents_app.rest.rights import Rights
from sessions_app.access import keys

if TYPE_CHECKING:
    from datetime import datetime

    from agents_app.selectors import AgentSpec
    from sessions_app.access.keys import NewSecret
    from sessions_app.models import ApiKey

_SCOPES = frozenset({connections.CONNECT})


def issue(
    user_id: int,
    name: str,
    *,
    expires_at: datetime | None = None,
    by: Rights,
    until: datetime | None = None,
    address: str = "",
) -> tuple[AgentSpec, NewSecret]:
    """Return a person's connected agent and a new token for it; claims the name if it is free.

    Raises like `connections.claim` and `keys.make_key`.
    """
    agent = connections.claim(name, owner_id=user_id, rights=by)
    rights = Rights(scopes=_SCOPES, agents=frozenset({agent.id}), protocols=frozenset({"uamp"}))
    request = keys.KeyRequest(name=f"connects {agent.name}", rights=rights, expires_at=expires_at)
    return agent, keys.make_key(user_id, request, by=by, until=until, address=address)


def tokens_of(user_id: int) -> list[ApiKey]:
    """Return a person's valid connect tokens, newest first."""
    return [key for key in keys.keys_of(user_id) if is_connect_token(key)]


def find_token(user_id: int, key_id: int) -> ApiKey | None:
    """Return a person's own valid connect token."""
    key = keys.find_key(user_id, key_id)
    return key if key is not None and is_connect_token(key) else None


def is_connect_token(key: ApiKey) -> bool:
    """Return whether a key is a connect token."""
    return only_connects(key.rights) and len(key.agents or ()) == 1


def only_connects(rights: Rights) -> bool:
    """Return whether a credential can register agents and do nothing else."""
    return rights.scopes == _SCOPES
