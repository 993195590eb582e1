"""People with restricted keys, and the errors they receive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_app.rest.rights import Rights
from sessions_app.access import keys
from tests.live_server import Person

if TYPE_CHECKING:
    from tests.client import UampClient

FORBIDDEN, NOT_FOUND, UNAUTHORIZED = 403, 404, 401


def key_of(person: Person, *scopes: str, **more: Any) -> Person:
    """Return a person with a key of these scopes instead of the one of all rights."""
    narrowed: dict[str, Any] = {
        name: frozenset(more.pop(name)) for name in ("chats", "agents", "protocols") if name in more
    }
    rights = Rights(scopes=frozenset(scopes or {"*"}), **narrowed)
    request = keys.KeyRequest(name="narrow", rights=rights, **more)
    return Person(person.user, keys.make_key(person.user.pk, request).secret)


def refusal(client: UampClient) -> dict[str, Any]:
    """Return the next error of a socket."""
    error: dict[str, Any] = client.until("session.error")[-1]["error"]
    return error
