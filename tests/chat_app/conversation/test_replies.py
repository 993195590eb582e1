"""Turns that answer an earlier message: what members, agents and REST are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chat_app.conversation.deletion import delete_message
from chat_app.log import history
from chat_app.models import Message
from tests import factories
from tests.chat_app.conversation.joining import joined, refusal, send_message
from tests.client import text_of
from tests.live_server import Dial, Person, quick_agent, shared_chat

if TYPE_CHECKING:
    import httpx


def test_a_reply_shows_what_it_answers_to_members_and_to_the_agent(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person
) -> None:
    quick_agent("parrot", "echo")
    chat = shared_chat(alice, bob, agents=("parrot",), trigger="mention")
    asker, reader = (joined(dial, who, chat) for who in (alice, bob))
    first = send_message(asker, "The sky is blue.\nToday.")
    reader.until("message.created")
    # The script says what it was given, so that the quote is in its answer, now and from the rows.
    for text in ("@parrot is it?", "@parrot and now?"):
        asker.ask(text, reply_to=first)
        created = reader.until("message.created")[-1]["message"]
        assert (created["content"], created["reply_to"]) == (text, first)
        frames = asker.until("response.done")
        assert text_of(frames).startswith("> alice: The sky is blue.\n> Today.\n\n")
        reader.until("response.done")
        reader.until("message.created")
    rows = web.get(f"/api/v1/chats/{chat.pk}/messages?order=asc", headers=bob.headers).json()
    quoted = {"id": first, "name": "alice", "content": "The sky is blue.\nToday."}
    assert [row["reply_to"] for row in rows["data"]] == [None, quoted, None, quoted, None]
    seen = [m.view_for("a", shared=True).content for m in history.history(chat.pk, limit=10)]
    assert seen[1] == "> alice: The sky is blue.\n> Today.\n\n@parrot is it?"
    # What was deleted is quoted to no one any more.
    delete_message(chat_id=chat.pk, message_id=first, user_id=alice.user.pk)
    rows = web.get(f"/api/v1/chats/{chat.pk}/messages?order=asc", headers=bob.headers).json()
    assert rows["data"][1]["reply_to"] == {"id": first, "name": "alice", "content": ""}
    seen = [m.view_for("a", shared=True).content for m in history.history(chat.pk, limit=10)]
    assert seen[0] == "@parrot is it?"


def test_a_reply_answers_a_message_of_its_own_chat_only(
    dial: Dial, alice: Person, bob: Person
) -> None:
    mine, other = shared_chat(alice, bob), shared_chat(bob)
    foreign = factories.message(other, bob.user, "secret")
    gone = factories.message(mine, alice.user, "gone")
    delete_message(chat_id=mine.pk, message_id=gone.pk, user_id=alice.user.pk)
    client = joined(dial, alice, mine)
    for message_id in (foreign.pk, gone.pk, "msg_none"):
        client.ask("what?", reply_to=message_id)
        assert refusal(client) == "message_not_found"
    assert not Message.objects.filter(content="what?").exists()


def test_rest_shows_nothing_of_another_chat_that_a_row_replies_to(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    """A home of a mirrored chat chooses the `reply_to` of its messages."""
    mirrored, other = shared_chat(alice), shared_chat(bob)
    secret = factories.message(other, bob.user, "secret")
    own = factories.message(mirrored, alice.user, "first")
    for answered in (secret, own):
        factories.message(mirrored, alice.user, f"to {answered.content}", reply_to=answered.pk)
    address = f"/api/v1/chats/{mirrored.pk}/messages?order=asc"
    rows = web.get(address, headers=alice.headers).json()["data"]
    quoted = {"id": own.pk, "name": own.name, "content": "first"}
    assert [row["reply_to"] for row in rows] == [None, None, quoted]
