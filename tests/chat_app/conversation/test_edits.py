"""Edits and deletions of messages: who may, what members receive, what the log and others keep."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from chat_app.log import history
from chat_app.members.participants import remove_participant
from chat_app.models import (
    ChatEvent,
    Content,
    ContentUse,
    Message,
    MessageDeletion,
    MessageRevision,
    Participant,
)
from chat_app.search.search import search_messages
from sessions_app.access import rates
from sessions_app.models import Response
from tests import factories
from tests.chat_app.conversation.joining import joined, refusal, send_message
from tests.client import Frame, Story, text_of, wait_until
from tests.live_server import Dial, Person, quick_agent, shared_chat

if TYPE_CHECKING:
    import httpx
    from pytest_django import Settings

    from chat_app.models import Chat


@pytest.fixture
def chat(alice: Person, bob: Person) -> Chat:
    """Give a chat of alice, who owns it, and bob."""
    return shared_chat(alice, bob)


def without_session(frame: Frame) -> Frame:
    return {name: value for name, value in frame.items() if name != "session_id"}


def messages(web: httpx.Client, who: Person, chat: Chat) -> list[dict[str, Any]]:
    answer = web.get(f"/api/v1/chats/{chat.pk}/messages?order=asc", headers=who.headers)
    data: list[dict[str, Any]] = answer.json()["data"]
    return data


def test_an_edit_reaches_the_members_the_log_and_rest_and_keeps_what_was_said(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, chat: Chat
) -> None:
    clients = [joined(dial, who, chat) for who in (alice, bob)]
    message_id = send_message(clients[0], "wether?")
    clients[1].until("message.created")
    clients[0].send("message.edit", message_id=message_id, content="weather?", revision=0)
    edited_frames = [client.until("message.edited")[-1] for client in clients]
    assert without_session(edited_frames[0]) == without_session(edited_frames[1])
    assert (edited_frames[0]["content"], edited_frames[0]["revision"]) == ("weather?", 1)
    assert edited_frames[0]["user_id"] == str(alice.user.pk)
    assert edited_frames[0]["seq"] == ChatEvent.objects.get(type="message.edited").seq
    # The same text again changes nothing, and its sender receives what it is.
    clients[0].send("message.edit", message_id=message_id, content="weather?", revision=0)
    again = clients[0].until("message.edited")[-1]
    assert "seq" not in again
    assert again["revision"] == 1
    # A client that was away reads both in their order.
    story = Story()
    late = joined(dial, bob, chat)
    late.close()
    resumed = dial(bob)
    created = resumed.create_session(chat=chat.pk)
    resumed.close()
    back = dial(bob)
    after = {"session_id": created["session_id"], "epoch": created["epoch"], "after": 0}
    back.send("session.create", session={}, chat=chat.pk, resume=after)
    story.take_all(back.until("message.edited"))
    assert [frame["type"] for frame in story.log.values()] == ["message.created", "message.edited"]
    (row,) = messages(web, bob, chat)
    assert (row["content"], row["revision"]) == ("weather?", 1)
    assert row["edited_at"] is not None
    listed = web.get(f"/api/v1/messages/{message_id}/revisions", headers=bob.headers).json()
    assert [(r["revision"], r["content"]) for r in listed["data"]] == [
        (0, "wether?"),
        (1, "weather?"),
    ]
    assert listed["data"][1]["edited_by"] == str(alice.user.pk)
    assert [m.content for m in search_messages(chat.pk, ["weather"], limit=5)] == ["weather?"]
    assert search_messages(chat.pk, ["wether"], limit=5) == []


def test_only_the_author_edits_and_only_the_author_or_an_owner_deletes(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, mallory: Person, chat: Chat
) -> None:
    owner, member = (joined(dial, who, chat) for who in (alice, bob))
    owners = send_message(owner, "of the owner")
    members = send_message(member, "of the member")
    path = "/api/v1/messages/"
    for client, message_id in ((owner, members), (member, owners)):
        client.settle()
        client.send("message.edit", message_id=message_id, content="mine now")
        assert refusal(client) == "forbidden"
    member.send("message.delete", message_id=owners)
    assert refusal(member) == "forbidden"
    assert web.patch(path + owners, json={"content": "x"}, headers=bob.headers).status_code == 403
    assert web.delete(path + owners, headers=bob.headers).status_code == 403
    # A stranger, in a session of their own chat and over REST.
    stranger = dial(mallory)
    stranger.create_session(agent="echo")
    for act in ({"type_": "message.delete"}, {"type_": "message.edit", "content": "x"}):
        stranger.send(**act, message_id=owners)
        assert refusal(stranger) == "message_not_found"
        stranger.send(**act, message_id=owners, chat_id=chat.pk)
        assert refusal(stranger) == "chat_not_found"
    assert web.delete(path + owners, headers=mallory.headers).status_code == 404
    # A member who was removed, over REST and over the session that they still have.
    gone = Participant.objects.get(chat=chat, user=bob.user)
    remove_participant(chat_id=chat.pk, removed_by=alice.user, participant_id=gone.pk)
    assert web.patch(path + members, json={"content": "x"}, headers=bob.headers).status_code == 404
    assert web.delete(path + members, headers=bob.headers).status_code == 404
    assert not ChatEvent.objects.filter(type__in=("message.edited", "message.deleted")).exists()
    # The owner deletes what the member said; the log says who it was.
    owner.send("message.delete", message_id=members)
    deleted_frame = owner.until("message.deleted")[-1]
    assert (deleted_frame["message_id"], deleted_frame["user_id"]) == (members, str(alice.user.pk))
    assert MessageDeletion.objects.get().deleted_by == alice.user


def test_a_removed_member_does_not_edit_over_the_session_that_is_open(
    dial: Dial, alice: Person, bob: Person, chat: Chat
) -> None:
    member = joined(dial, bob, chat)
    message_id = send_message(member, "mine")
    Participant.objects.filter(chat=chat, user=bob.user).update(left_at=chat.created_at)
    member.send("message.edit", message_id=message_id, content="changed")
    assert refusal(member) == "message_not_found"
    member.send("message.delete", message_id=message_id)
    assert refusal(member) == "message_not_found"
    assert Message.objects.get().content == "mine"


def test_a_deleted_message_is_withheld_everywhere_and_keeps_its_place(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, chat: Chat
) -> None:
    client = joined(dial, alice, chat)
    picture = base64.b64encode(factories.png()).decode()
    client.send("input.image", image=picture, format="png")
    message_id = send_message(client, "s3cret one")
    client.send("message.edit", message_id=message_id, content="s3cret two")
    client.until("message.edited")
    other_id = send_message(client, "kept")
    content = Content.objects.get()
    blob = f"/api/content/{content.pk}"
    assert web.get(blob, headers=bob.headers).status_code == 200
    client.send("message.delete", message_id=message_id)
    deleted_frame = client.until("message.deleted")[-1]
    client.send("message.delete", message_id=message_id)
    again = client.until("message.deleted")[-1]
    assert (again["deleted_at"], "seq" in again) == (deleted_frame["deleted_at"], False)
    client.send("message.edit", message_id=message_id, content="back")
    assert refusal(client) == "message_not_found"
    # History shows the place; the log is replayed with markers; nothing has the text.
    rows = messages(web, bob, chat)
    assert [row["id"] for row in rows] == [message_id, other_id]
    assert (rows[0]["content"], rows[0]["content_items"]) == ("", [])
    assert rows[0]["deleted_at"] is not None
    back = dial(bob)
    created = back.create_session(chat=chat.pk)
    back.close()
    resumed = dial(bob)
    after = {"session_id": created["session_id"], "epoch": created["epoch"], "after": 0}
    resumed.send("session.create", session={}, chat=chat.pk, resume=after)
    frames = resumed.until("message.deleted")
    replayed = [frame for frame in frames if "seq" in frame and frame["type"] != "session.created"]
    assert [frame["type"] for frame in replayed] == [
        "message.created",
        "message.edited",
        "message.created",
        "message.deleted",
    ]
    assert (
        replayed[0]["message"]["deleted_at"]
        == replayed[1]["deleted_at"]
        == deleted_frame["deleted_at"]
    )
    texts = [str(frames)]
    for path in (
        f"/api/v1/chats/{chat.pk}/messages",
        f"/api/v1/chats/{chat.pk}/events",
        f"/api/v1/messages/{message_id}",
        f"/api/v1/messages/{message_id}/revisions",
        f"/api/v1/messages/{message_id}/frames",
        f"/api/v1/chats/{chat.pk}",
    ):
        answer = web.get(path, headers=bob.headers)
        assert answer.status_code == 200, answer.text
        texts.append(answer.text)
    assert not [text for text in texts if "s3cret" in text or str(content.pk) in text]
    assert [m.content for m in history.history(chat.pk, limit=10)] == ["kept"]
    assert [m.content for m in history.last_messages(chat.pk, limit=10)] == ["kept"]
    assert search_messages(chat.pk, ["s3cret"], limit=5) == []
    # Its picture is the sender's alone; what was written is in the log as it was.
    assert web.get(blob, headers=bob.headers).status_code == 404
    assert web.get(blob, headers=alice.headers).status_code == 200
    assert not ContentUse.objects.exists()
    assert "s3cret one" in str(ChatEvent.objects.get(type="message.created", seq=1).payload)


@pytest.mark.parametrize("is_counted", [True, False])
def test_a_picture_that_another_message_shows_stays_readable(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, chat: Chat, *, is_counted: bool
) -> None:
    client = joined(dial, alice, chat)
    client.send("input.image", image=base64.b64encode(factories.png()).decode(), format="png")
    first = send_message(client, "look")
    blob = f"/api/content/{Content.objects.get().pk}"
    client.send("input.image", image={"url": blob})
    second = send_message(client, "look again")
    assert ContentUse.objects.get().shown_by == 2
    if not is_counted:
        ContentUse.objects.update(shown_by=None)
    client.send("message.delete", message_id=first)
    client.until("message.deleted")
    assert web.get(blob, headers=bob.headers).status_code == 200
    assert ContentUse.objects.get().shown_by == 1
    client.send("message.delete", message_id=second)
    client.until("message.deleted")
    assert web.get(blob, headers=bob.headers).status_code == 404


def test_an_owner_deletes_an_answer_and_no_protocol_has_it(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, chat: Chat
) -> None:
    client = joined(dial, alice, chat)
    client.ask("@echo s3cret answer")
    client.until("response.done")
    frame = client.until("message.created")[-1]
    answer_id = frame["message"]["id"]
    question = Message.objects.get(role="user")
    assert web.delete(f"/api/v1/messages/{answer_id}", headers=bob.headers).status_code == 403
    assert web.delete(f"/api/v1/messages/{answer_id}", headers=alice.headers).status_code == 204
    assert web.delete(f"/api/v1/messages/{question.pk}", headers=alice.headers).status_code == 204
    for path in (f"/api/v1/chats/{chat.pk}/events", f"/api/v1/messages/{answer_id}/frames"):
        answer = web.get(path, headers=bob.headers)
        assert answer.status_code == 200, answer.text
        assert "s3cret" not in answer.text


def test_an_edit_while_its_answer_runs_changes_the_next_answer_only(
    dial: Dial, alice: Person, chat: Chat
) -> None:
    quick_agent("slowly", "echo", delay=0.01)
    words = " ".join(f"w{number}" for number in range(60))
    group = shared_chat(alice, agents=("slowly",), trigger="always")
    client = joined(dial, alice, group)
    client.ask(words)
    frames = client.until("response.delta")
    question = next(f for f in frames if f["type"] == "message.created")["message"]["id"]
    client.send("message.edit", message_id=question, content="edited")
    frames += client.until("response.done")
    assert "message.edited" in {frame["type"] for frame in frames}
    assert text_of(frames) == words
    # One that is deleted while its answer runs leaves the answer whole, too.
    client.ask(words)
    frames = client.until("response.delta")
    question = [f for f in frames if f["type"] == "message.created"][-1]["message"]["id"]
    client.send("message.delete", message_id=question)
    response_id = frames[-1]["response_id"]
    # An answer that is streamed has no message yet: its id is not one.
    client.send("message.delete", message_id=response_id)
    frames += client.until("response.done")
    errors = [f["error"]["code"] for f in frames if f["type"] == "session.error"]
    assert errors == ["message_not_found"]
    assert text_of(frames, response_id) == words
    wait_until(lambda: not Response.objects.filter(finished_at=None).exists())
    roles = [(m.role, m.content) for m in history.history(group.pk, limit=10)]
    assert roles == [("user", "edited"), ("assistant", words), ("assistant", words)]


def test_edits_of_one_message_have_an_end(
    dial: Dial, web: httpx.Client, alice: Person, chat: Chat, settings: Settings
) -> None:
    settings.UAMP_MESSAGE_REVISIONS = 3
    client = joined(dial, alice, chat)
    message_id = send_message(client, "0")
    for number in range(1, 4):
        client.send("message.edit", message_id=message_id, content=str(number))
        assert client.until("message.edited")[-1]["revision"] == number
    client.send("message.edit", message_id=message_id, content="4")
    assert refusal(client) == "quota_exceeded"
    path = f"/api/v1/messages/{message_id}"
    answer = web.patch(path, json={"content": "4"}, headers=alice.headers)
    assert (answer.status_code, answer.json()["code"]) == (413, "quota_exceeded")
    assert MessageRevision.objects.count() == 4
    assert ChatEvent.objects.filter(type="message.edited").count() == 3


def test_an_edit_is_refused_where_it_would_lose_another_one_or_leave_nothing(
    web: httpx.Client, alice: Person, chat: Chat, settings: Settings
) -> None:
    message = factories.message(chat, alice.user, "first")
    path = f"/api/v1/messages/{message.pk}"
    edited = web.patch(path, json={"content": "second", "revision": 0}, headers=alice.headers)
    assert (edited.status_code, edited.json()["revision"]) == (200, 1)
    late = web.patch(path, json={"content": "third", "revision": 0}, headers=alice.headers)
    assert (late.status_code, late.json()["code"]) == (409, "message_conflict")
    assert web.patch(path, json={"content": " \n"}, headers=alice.headers).status_code == 400
    settings.UAMP_MESSAGE_BYTES = 4
    assert web.patch(path, json={"content": "12345"}, headers=alice.headers).status_code == 400
    assert web.patch(path, json={"content": "1234"}, headers=alice.headers).status_code == 200


def test_a_text_too_large_is_refused_on_the_socket(
    dial: Dial, alice: Person, chat: Chat, settings: Settings
) -> None:
    client = joined(dial, alice, chat)
    message_id = send_message(client, "x")
    settings.UAMP_MESSAGE_BYTES = 4
    client.send("message.edit", message_id=message_id, content="12345")
    assert refusal(client) == "event_too_large"


def test_the_texts_of_edits_over_rest_count_against_the_bytes_of_a_day(
    dial: Dial, web: httpx.Client, alice: Person, chat: Chat, settings: Settings
) -> None:
    message_id = send_message(joined(dial, alice, chat), "short")
    rates.forget()
    settings.UAMP_TEXT_BYTES_PER_DAY = 1_500
    answers = [
        web.patch(
            f"/api/v1/messages/{message_id}",
            json={"content": letter * 1_000},
            headers=alice.headers,
        )
        for letter in "ab"
    ]
    assert [answer.status_code for answer in answers] == [200, 429]
    assert answers[1].headers["retry-after"]
    assert Message.objects.get(pk=message_id).content == "a" * 1_000


def test_a_session_of_its_own_chat_is_answered(dial: Dial, alice: Person) -> None:
    client = dial(alice)
    client.create_session(agent="echo")
    client.answer("first")
    message = Message.objects.get(role="user")
    event_id = client.send("message.edit", message_id=message.pk, content="second")
    edited_frame = client.until("message.edited")[-1]
    assert (edited_frame["content"], edited_frame["seq"]) == (
        "second",
        ChatEvent.objects.latest("id").seq,
    )
    # The same event again has the same answer and no second effect.
    again = {"type": "message.edit", "message_id": message.pk, "content": "second"}
    client.send_raw(json.dumps({**again, "event_id": event_id}))
    assert client.until("message.edited")[-1]["event_id"] == edited_frame["event_id"]
    assert ChatEvent.objects.filter(type="message.edited").count() == 1


@pytest.mark.django_db
def test_a_page_of_the_log_takes_one_query_more_for_what_was_deleted(
    django_assert_num_queries: Any,
) -> None:
    person = factories.user()
    chat = factories.chat(person)
    for number in range(20):
        factories.message(chat, person, str(number))
    with django_assert_num_queries(2):
        assert len(history.events_after(chat.pk, 0)) == 20
    assert connection.vendor in {"sqlite", "postgresql"}
