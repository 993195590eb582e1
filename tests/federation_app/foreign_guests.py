"""Envelopes about shared chats from a server that is not ours, and gwen, a person there."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from federation_app.guests import invitations
from federation_app.guests.contents import GUESTS_TYPE
from tests.federation_app.peer import SERVER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from chat_app.models import Chat
    from tests.conftest import ServerAddress
    from tests.federation_app.peer import ForeignPeer
    from tests.live_server import Person

GUEST = {"id": "7", "name": "gwen@client.example"}


def envelope_of(peer: ForeignPeer, intent: str, content: Any, **members: Any) -> Any:
    """Return an envelope about a shared chat."""
    body = {"type": GUESTS_TYPE, "content": json.dumps(content)}
    return peer.envelope(intent, **{"to": [SERVER], "body": body, **members})


@pytest.fixture
def tell(federated: ServerAddress) -> Iterator[Callable[..., tuple[int, str]]]:
    """Yield a function that posts an envelope and returns the status and the code."""
    with httpx.Client(base_url=federated.http, timeout=60, trust_env=False) as client:

        def post(peer: ForeignPeer, intent: str, content: Any, **members: Any) -> tuple[int, str]:
            raw = json.dumps(envelope_of(peer, intent, content, **members))
            headers = {"Content-Type": "application/uamp+json"}
            response = client.post("/v1/messages", content=raw, headers=headers)
            return response.status_code, response.json().get("code", "")

        yield post


def invited(chat: Chat, by: Person, name: str = GUEST["name"]) -> str:
    """Invite a guest to a chat, and return the id of the invitation."""
    return invitations.invite(chat_id=chat.pk, invited_by=by.user, name=name).invitation_id


def accept(peer: ForeignPeer, tell: Callable[..., tuple[int, str]], invitation: str) -> None:
    """Accept an invitation as gwen."""
    assert tell(peer, "confirm", {"invitation": invitation, "by": GUEST}) == (202, "")


def message(chat: Chat, text: str = "hi", **changes: Any) -> dict[str, Any]:
    """Return a message of gwen."""
    ref = f"turn-{uuid.uuid4().int % 10**6}-x"
    return {"act": "message", "chat": chat.pk, "by": GUEST, "ref": ref, "text": text, **changes}
