"""A signed answer, and where its signature is read."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import rfc8785

if TYPE_CHECKING:
    import httpx

    from tests.client import Frame
    from tests.live_server import Dial, Person


def digest(value: Any) -> str:
    return hashlib.sha256(rfc8785.dumps(value)).hexdigest()


def answered(dial: Dial, who: Person, agent: str, text: str = "Hello wörld") -> Frame:
    client = dial(who)
    client.create_session(agent=agent)
    return client.answer(text)[-1]


def keys_of(web: httpx.Client) -> list[dict[str, Any]]:
    keys: list[dict[str, Any]] = web.get("/.well-known/jwks.json").json()["keys"]
    return keys


def history(web: httpx.Client, who: Person, chat_id: str) -> list[dict[str, Any]]:
    query = {"expand": "signature", "order": "asc"}
    path = f"/api/v1/chats/{chat_id}/messages"
    messages: list[dict[str, Any]] = web.get(path, params=query, headers=who.headers).json()["data"]
    return messages
