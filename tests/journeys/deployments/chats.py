"""Chats that the journeys of this folder have each for themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.journeys.product import Product

MAX_BYTES: Final = 300_000
"""Of an uploaded file."""


def new_chat(
    product: Product, title: str, *, users: tuple[str, ...] = ("bob",), agents: tuple[str, ...] = ()
) -> str:
    """Make a chat of alice with others and return its ID."""
    body = {"title": title, "users": list(users), "agents": list(agents)}
    with product.api("alice") as client:
        chat_id: str = client.post("/api/v1/chats", json=body).raise_for_status().json()["id"]
    return chat_id


def messages(product: Product, chat_id: str, username: str = "alice") -> list[str]:
    """Return the texts of a chat's messages as they are stored, oldest first."""
    with product.api(username) as client:
        path = f"/api/v1/chats/{chat_id}/messages"
        answer = client.get(path, params={"order": "asc", "limit": 200})
    return [message["content"] for message in answer.raise_for_status().json()["data"]]
