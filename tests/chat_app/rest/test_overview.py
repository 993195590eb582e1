"""A list of chats counts and shows what the chats show: nothing deleted, and an answer once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import transaction

from chat_app.conversation.deletion import delete_message
from chat_app.conversation.versions import replace_versions
from chat_app.members import receipts
from tests import factories
from tests.chat_app.rest.rest_caller import signed_in

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from agents_app.models import Agent
    from chat_app.models import Chat, Message

pytestmark = pytest.mark.django_db


class Scene:
    """A chat of ada, bob and an agent; ada looks at it."""

    def __init__(self) -> None:
        self.ada, self.bob = factories.user("ada"), factories.user("bob")
        self.echo = factories.agent()
        self.chat: Chat = factories.chat(self.ada, self.bob, self.echo)

    def say(self, who: User | Agent, text: str, **fields: Any) -> Message:
        """Have someone write a message."""
        return factories.message(self.chat, who, text, **fields)

    def delete(self, message: Message) -> None:
        """Have its author, or the owner, delete a message."""
        user_id = message.sender_user_id or self.ada.pk
        delete_message(chat_id=self.chat.pk, message_id=message.pk, user_id=user_id)

    def answer_again(self, first: Message, text: str) -> Message:
        """Have the agent make an answer again."""
        again = self.say(self.echo, text, version_of=first.pk)
        with transaction.atomic():
            replace_versions(self.chat.pk, first.pk, again.pk)
        return again

    def read(self, message: Message) -> None:
        """Have ada read up to a message."""
        receipts.mark_read(chat_id=self.chat.pk, user_id=self.ada.pk, message_id=message.pk)

    def unread_and_preview(self) -> tuple[int, dict[str, str] | None]:
        """Return ada's unread count and the preview; a list and a chat say the same."""
        chat_data = signed_in(self.ada).get(f"/api/v1/chats/{self.chat.pk}").json()
        (listed,) = signed_in(self.ada).get("/api/v1/chats").json()["data"]
        assert (chat_data["unread"], chat_data["preview"]) == (listed["unread"], listed["preview"])
        return chat_data["unread"], chat_data["preview"]


def by(name: str, content: str) -> dict[str, str]:
    return {"name": name, "content": content}


def test_a_deleted_message_is_neither_unread_nor_the_preview() -> None:
    scene = Scene()
    first, second = scene.say(scene.bob, "one"), scene.say(scene.bob, "two")
    assert scene.unread_and_preview() == (2, by("bob", "two"))
    scene.delete(second)
    assert scene.unread_and_preview() == (1, by("bob", "one"))
    scene.delete(first)
    assert scene.unread_and_preview() == (0, None)


def test_the_preview_does_not_mention_a_deleted_file() -> None:
    scene = Scene()
    scene.say(scene.ada, "look")
    item = {"type": "file", "file": {"url": "https://a.example/b"}, "filename": "b"}
    file = scene.say(scene.bob, "", content_items=({**item, "mime_type": "text/plain"},))
    assert scene.unread_and_preview() == (1, by("bob", ""))
    scene.delete(file)
    assert scene.unread_and_preview() == (0, by("ada", "look"))


@pytest.mark.parametrize("times", [1, 3])
def test_an_answer_that_was_made_again_counts_once(times: int) -> None:
    scene = Scene()
    scene.say(scene.bob, "a question")
    first = scene.say(scene.echo, "version 0")
    for number in range(1, times + 1):
        scene.answer_again(first, f"version {number}")
    assert scene.unread_and_preview() == (2, by("echo", f"version {times}"))


def test_what_was_read_stays_read_when_something_else_is_deleted() -> None:
    scene = Scene()
    first, second = scene.say(scene.bob, "one"), scene.say(scene.echo, "two")
    scene.read(second)
    scene.delete(first)
    assert scene.unread_and_preview() == (0, by("echo", "two"))
    scene.answer_again(second, "two again")
    assert scene.unread_and_preview() == (1, by("echo", "two again"))


def test_a_deleted_version_is_shown_no_more() -> None:
    scene = Scene()
    scene.say(scene.bob, "a question")
    first = scene.say(scene.echo, "version 0")
    scene.delete(scene.answer_again(first, "version 1"))
    assert scene.unread_and_preview() == (1, by("bob", "a question"))
