"""The picture of a chat outlives the message that brought it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chat_app.members.chats import ChatChange, update_chat
from chat_app.models import Content, ContentUse
from tests import factories
from tests.chat_app.conversation.joining import joined
from tests.live_server import Dial, Person, shared_chat

if TYPE_CHECKING:
    import httpx

    from chat_app.models import Chat
    from tests.client import UampClient


def shows(client: UampClient, content: Content) -> str:
    """Send a message with a picture, and return its id."""
    client.send("input.image", image={"url": f"/api/content/{content.pk}"})
    client.ask("see this")
    message: dict[str, Any] = {}
    while not message.get("content_items"):
        message = client.until("message.created")[-1]["message"]
    return str(message["id"])


def can_read(web: httpx.Client, who: Person, content: Content) -> bool:
    return web.get(f"/api/content/{content.pk}", headers=who.headers).status_code == 200


@pytest.mark.parametrize("by_agent", [False, True])
def test_the_picture_of_a_chat_stays_when_its_message_is_deleted(
    dial: Dial,
    web: httpx.Client,
    alice: Person,
    bob: Person,
    by_agent: bool,  # noqa: FBT001 a column of the table
) -> None:
    chat: Chat = shared_chat(alice, bob)
    picture, other = (
        factories.content(alice.user),
        factories.content(alice.user, factories.png(3, 3)),
    )
    client = joined(dial, alice, chat)
    messages = [shows(client, content) for content in (picture, other)]
    if by_agent:
        # What an agent made is deleted from the disk with its last use.
        Content.objects.update(owner=None, owner_key=f"chat:{chat.pk}")
    update_chat(
        chat_id=chat.pk, changed_by=alice.user, change=ChatChange(avatar=f"content:{picture.pk}")
    )
    for message_id in messages:
        answer = web.delete(f"/api/v1/messages/{message_id}", headers=alice.headers)
        assert answer.status_code == 204
    assert can_read(web, bob, picture)
    assert not can_read(web, bob, other)
    assert ContentUse.objects.get(chat=chat).content_id == picture.pk
    assert Content.objects.filter(pk=other.pk).exists() != by_agent
    chat_data = web.get(f"/api/v1/chats/{chat.pk}", headers=bob.headers).json()
    assert chat_data["avatar_url"] == f"/api/content/{picture.pk}"
