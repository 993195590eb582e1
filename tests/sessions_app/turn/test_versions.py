"""Answers that are made again: who may, what it costs, and what agents, members and REST read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chat_app.conversation.deletion import delete_message
from chat_app.export.pages import pages
from chat_app.log import history
from chat_app.models import Chat, ChatEvent, Message
from payments_app.models import Hold
from sessions_app.handlers.turns.turns import regenerate_answers
from sessions_app.models import Response
from tests.chat_app.conversation.joining import joined, refusal
from tests.client import text_of
from tests.live_server import Dial, Person, quick_agent, shared_chat
from tests.sessions_app.billing.paid_agents import clean, earned, pay, priced, rich, wallet

if TYPE_CHECKING:
    import httpx

    from tests.client import UampClient


def answered(client: UampClient) -> str:
    """Return the id of the next message of an agent."""
    while True:
        message = client.until("message.created")[-1]["message"]
        if message["sender_kind"] == "agent":
            return str(message["id"])


def test_an_answer_is_regenerated_in_its_place(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person
) -> None:
    quick_agent("parrot", "echo")
    chat = shared_chat(alice, bob, agents=("parrot",))
    asker = joined(dial, bob, chat)
    asker.ask("@parrot one")
    first_frames = asker.until("response.done")
    first = answered(asker)
    asker.send("response.create", replaces=first)
    frames = asker.until("response.done")
    # The agent answers the question, as if the answer had not been given.
    assert text_of(frames) == text_of(first_frames) == "one"
    created = next(frame for frame in frames if frame["type"] == "response.created")
    assert created["replaces"] == first
    second = asker.until("message.created")[-1]["message"]
    assert second["version_of"] == first
    question = Message.objects.get(chat=chat, role="user")
    assert set(Response.objects.values_list("message_id", flat=True)) == {question.pk}
    # An owner makes the current version again; a former one is none.
    owner = joined(dial, alice, chat)
    owner.send("response.create", replaces=first)
    assert refusal(owner) == "message_not_found"
    owner.send("response.create", replaces=second["id"])
    third = answered(owner)
    asker.until("response.done")
    assert answered(asker) == third

    seen = history.history(chat.pk, limit=10)
    assert [message.content for message in seen] == ["@parrot one", "one"]
    assert [message.id for message in history.last_messages(chat.pk, limit=10)] == [
        question.pk,
        third,
    ]
    chat = Chat.objects.get(pk=chat.pk)
    history_pages = pages(chat, alice.user.pk, receipts=lambda *_: {})
    exported = [row["id"] for page in history_pages for row in page]
    assert exported == [question.pk, third]
    path = f"/api/v1/chats/{chat.pk}/messages?order=asc"
    listed = web.get(path, headers=bob.headers).json()["data"]
    assert [row["id"] for row in listed] == [question.pk, third]
    for message_id in (first, second["id"], third):
        versions = web.get(f"/api/v1/messages/{message_id}/versions?order=asc", headers=bob.headers)
        rows = versions.json()["data"]
        assert [row["id"] for row in rows] == [first, second["id"], third]
        assert [row["replaced_by"] for row in rows] == [second["id"], third, None]
    # The next turn of this process is given the current version alone.
    asker.ask("@parrot two")
    asker.until("response.done")
    answered(asker)
    assert [message.content for message in history.history(chat.pk, limit=10)] == [
        "@parrot one", "one", "@parrot two", "two",
    ]  # fmt: skip
    asker.send("response.create", replaces=third)
    assert refusal(asker) == "message_conflict"


def test_who_may_not_regenerate_an_answer(dial: Dial, alice: Person, bob: Person) -> None:
    quick_agent("parrot", "echo")
    chat = shared_chat(alice, bob, agents=("parrot",))
    owner, member = joined(dial, alice, chat), joined(dial, bob, chat)
    owner.ask("@parrot mine")
    owner.until("response.done")
    answer = answered(owner)
    question = Message.objects.get(chat=chat, role="user")
    member.settle()
    member.send("response.create", replaces=answer)
    assert refusal(member) == "forbidden"
    elsewhere = joined(dial, bob, shared_chat(bob, agents=("parrot",)))
    elsewhere.send("response.create", replaces=answer)
    assert refusal(elsewhere) == "message_not_found"
    for wrong in (question.pk, "msg_none"):
        owner.send("response.create", replaces=wrong)
        assert refusal(owner) == "message_not_found"
    owner.send("input.text", text="@parrot more")
    owner.send("response.create", replaces=answer)
    assert refusal(owner) == "invalid_event"
    delete_message(chat_id=chat.pk, message_id=question.pk, user_id=alice.user.pk)
    owner.send("response.create", replaces=answer)
    assert refusal(owner) == "message_not_found"
    assert Response.objects.count() == 1


def test_a_regenerated_answer_is_agreed_to_and_paid_once_more(dial: Dial, alice: Person) -> None:
    agent = priced("paid", per_answer="0.25")
    rich(alice)
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("Hello")
    pay(client, client.until("payment.required")[-1])
    client.until("payment.balance")
    answer = Message.objects.get(role="assistant").pk
    client.send("response.create", replaces=answer)
    demand = client.until("payment.required")[-1]
    assert demand["requirements"]["amount"] == "0.25"
    assert Message.objects.filter(role="assistant").count() == 1
    pay(client, demand)
    client.until("payment.balance")
    assert (str(wallet(alice).available), earned(agent)) == ("9.5", "0.5")
    assert Hold.objects.values("response_id").distinct().count() == 2
    assert clean()


def test_two_people_make_an_answer_again_at_once(dial: Dial, alice: Person, bob: Person) -> None:
    quick_agent("parrot", "echo", chunk_delay_ms=5)
    chat = shared_chat(alice, bob, agents=("parrot",))
    clients = [joined(dial, who, chat) for who in (alice, bob)]
    clients[1].ask("@parrot " + "many words " * 20)
    clients[1].until("response.done")
    first = answered(clients[1])
    for client in clients:
        client.send("response.create", replaces=first)
    answer_ids = [answered(clients[1]) for _ in clients]
    versions = list(Message.objects.filter(chat=chat, role="assistant").order_by("seq"))
    assert [row.pk for row in versions] == [first, *answer_ids]
    # One is current, whichever ended last; each former one names what took its place.
    assert [row.replaced_by for row in versions] == [answer_ids[0], answer_ids[1], None]
    assert [row.version_of for row in versions] == [None, first, first]


def test_a_question_is_edited_and_asked_again(dial: Dial, alice: Person, bob: Person) -> None:
    for name in ("parrot", "echoer"):
        quick_agent(name, "echo")
    chat = shared_chat(alice, bob, agents=("parrot", "echoer"))
    asker, other = joined(dial, bob, chat), joined(dial, alice, chat)
    asker.ask("@parrot @echoer one")
    former = {answered(asker), answered(asker)}
    question = Message.objects.get(chat=chat, role="user")
    edit = {"message_id": question.pk, "content": "@parrot @echoer two", "ask_again": True}
    # An owner of the chat may have answers made again, not with a text of their own.
    other.send("message.edit", **edit)
    assert refusal(other) == "forbidden"
    asker.send("message.edit", event_id="evt_again", revision=0, **edit)
    new_answer_ids = {answered(asker), answered(asker)}
    seen = history.history(chat.pk, limit=10)
    assert len(seen) == 3
    assert all("two" in row.content for row in seen)
    rows = Message.objects.filter(pk__in=new_answer_ids)
    assert {row.version_of for row in rows} == former
    question.refresh_from_db()
    assert question.revision == 1
    # The same edit under another id, as by a second press of the button, asks nothing.
    asker.send("message.edit", revision=0, **edit)
    assert refusal(asker) == "message_conflict"
    assert Response.objects.filter(message_id=question.pk).count() == 4
    # A text with a later question, or without an answer, stays what it is.
    asker.ask("later")
    asker.until("message.created")
    asker.send("message.edit", **(edit | {"content": "@parrot three"}))
    assert refusal(asker) == "message_conflict"
    later = Message.objects.get(chat=chat, content="later")
    asker.send("message.edit", message_id=later.pk, content="@parrot four", ask_again=True)
    assert refusal(asker) == "message_not_found"
    texts = Message.objects.filter(chat=chat, role="user").order_by("seq")
    assert list(texts.values_list("content", flat=True)) == ["@parrot @echoer two", "later"]
    assert Response.objects.count() == 4


@pytest.mark.parametrize("begun_count", [0, 1])
def test_an_edit_whose_process_died_is_asked_when_it_is_sent_again(
    dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch, begun_count: int
) -> None:
    for name in ("parrot", "echoer"):
        quick_agent(name, "echo")
    chat = shared_chat(alice, agents=("parrot", "echoer"))
    asker = dial(alice)
    opened = asker.create_session(chat=chat.pk)
    asker.ask("@parrot @echoer one")
    former = {answered(asker), answered(asker)}
    question = Message.objects.get(chat=chat, role="user")
    edit = {"message_id": question.pk, "content": "@parrot @echoer two", "ask_again": True}

    async def die_early(*of: Any) -> None:
        connection, attached, event, answer_ids = of
        await regenerate_answers(connection, attached, event, answer_ids[:begun_count])

    with monkeypatch.context() as process:
        process.setattr("sessions_app.handlers.chats.messages.regenerate_answers", die_early)
        asker.send("message.edit", event_id="evt_lost", revision=0, **edit)
        new_answer_ids = {answered(asker) for _ in range(begun_count)}
        asker.settle()
    assert Response.objects.filter(message_id=question.pk).count() == 2 + begun_count
    seq = ChatEvent.objects.filter(chat=chat).latest("seq").seq
    again = dial(alice)
    again.create_session(resume={"session_id": opened["session_id"], "after": seq})
    again.send("message.edit", event_id="evt_lost", revision=0, **edit)
    new_answer_ids |= {answered(again) for _ in range(2 - begun_count)}
    again.settle()
    # Once more, by a client that lost what it was sent: nothing is asked twice.
    last = dial(alice)
    last.create_session(resume={"session_id": opened["session_id"], "after": seq})
    last.send("message.edit", event_id="evt_lost", revision=0, **edit)
    assert "session.error" not in [frame["type"] for frame in last.settle()]
    rows = Message.objects.filter(pk__in=new_answer_ids)
    assert {(row.version_of, "two" in row.content) for row in rows} == {
        (message_id, True) for message_id in former
    }
    assert Response.objects.filter(message_id=question.pk).count() == 4


def test_an_edited_question_that_is_asked_again_is_paid_once_more(
    dial: Dial, alice: Person
) -> None:
    agent = priced("paid", per_answer="0.25")
    rich(alice)
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("Hello")
    pay(client, client.until("payment.required")[-1])
    client.until("payment.balance")
    question = Message.objects.get(role="user")
    edit = {"event_id": "evt_paid", "message_id": question.pk, "content": "Hi", "ask_again": True}
    client.send("message.edit", **edit)
    demand = client.until("payment.required")[-1]
    client.send("message.edit", **edit)
    client.settle()
    assert Response.objects.count() == 2
    pay(client, demand)
    client.until("payment.balance")
    assert (str(wallet(alice).available), earned(agent)) == ("9.5", "0.5")
    assert clean()
