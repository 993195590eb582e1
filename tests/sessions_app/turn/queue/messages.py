"""Shorthands to queue messages and to read the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chat_app.models import Message

if TYPE_CHECKING:
    from chat_app.models import Chat
    from tests.client import UampClient
    from tests.live_server import Dial, Person


def inside(dial: Dial, who: Person, chat: Chat) -> UampClient:
    """Return a socket of a person with a session of a chat."""
    client = dial(who)
    client.create_session(chat=chat.pk)
    return client


def queue(client: UampClient, text: str, **fields: Any) -> str:
    """Send a message that may wait; return the event id of its request."""
    client.send("input.text", text=text, **fields)
    return client.send("response.create", queue=True)


def texts(client: UampClient) -> list[str]:
    """Wait for the queue, and return its texts."""
    return [item["text"] for item in client.until("queue.updated")[-1].get("items", [])]


def until_texts(client: UampClient, *expected: str) -> None:
    """Wait until the queue has these texts."""
    while texts(client) != list(expected):
        pass


def stop(client: UampClient) -> None:
    """Stop the answer that runs."""
    client.send("response.cancel")


def texts_of_people(chat: Chat) -> list[str]:
    """Return the texts of people, in order."""
    return list(
        Message.objects.filter(chat=chat, role="user")
        .order_by("seq")
        .values_list("content", flat=True)
    )


def refused(client: UampClient) -> str:
    """Return the code of the error that comes."""
    code: str = client.until("session.error", "response.error")[-1]["error"]["code"]
    return code
