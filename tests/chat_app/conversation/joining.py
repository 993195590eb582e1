"""Members on sockets: joining a chat, saying something, reading a refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chat_app.models import Chat
    from tests.client import Frame, UampClient
    from tests.live_server import Dial, Person


def joined(dial: Dial, who: Person, chat: Chat, **fields: Any) -> UampClient:
    """Return a socket of a member with a session of the chat."""
    client = dial(who)
    client.send("session.create", session={}, chat=chat.pk, **fields)
    client.until("capabilities")
    client.settle()
    return client


def send_message(client: UampClient, text: str) -> str:
    """Send a message that no agent answers, and return its id."""
    client.ask(text)
    message: Frame = {}
    while message.get("content") != text:
        message = client.until("message.created")[-1]["message"]
    return str(message["id"])


def refusal(client: UampClient) -> str:
    """Return the code of the next `session.error`."""
    code: str = client.until("session.error")[-1]["error"]["code"]
    return code
