"""Queued messages are sent in their order, once, and seen by all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils import timezone

from sessions_app.models import InboundEvent, PendingInput, QueuedTurn, Response, Session
from sessions_app.queue import rows
from sessions_app.turn import queued_turns
from tests.client import UampClient, wait_until
from tests.sessions_app.turn.queue.messages import (
    inside,
    queue,
    refused,
    stop,
    texts,
    texts_of_people,
    until_texts,
)

if TYPE_CHECKING:
    import httpx
    import pytest

    from chat_app.models import Chat
    from tests.live_server import Dial, Person


def test_a_queued_turn_counts_the_servers_that_passed_it_on(
    dial: Dial, bob: Person, chat: Chat, busy: UampClient
) -> None:
    other = dial(bob, headers={"X-UAMP-Hops": "5"})
    other.create_session(chat=chat.pk)
    queue(other, "@echo one")
    until_texts(busy, "@echo one")
    stop(busy)
    until_texts(busy)
    wait_until(lambda: Response.objects.filter(agent__name="echo").exists())
    assert Response.objects.get(agent__name="echo").request["servers"] == 5


def test_messages_wait_for_the_answer_and_are_sent_in_their_order(
    dial: Dial, bob: Person, chat: Chat, busy: UampClient
) -> None:
    other = inside(dial, bob, chat)
    first = queue(busy, "@echo one")
    item = other.until("queue.updated")[-1]["items"][0]
    assert (item["text"], item["username"], item["status"]) == ("@echo one", "alice", "queued")
    assert item["client_event_id"] == first
    queue(other, "@echo two")
    until_texts(busy, "@echo one", "@echo two")
    # Who comes later is shown the queue.
    assert texts(inside(dial, bob, chat)) == ["@echo one", "@echo two"]
    assert texts_of_people(chat) == ["@endless talk"]
    stop(busy)
    created: dict[str, Any] = {}
    while created.get("content") != "@echo one":
        created = busy.until("message.created")[-1]["message"]
    assert (created["content"], created["client_event_id"]) == ("@echo one", first)
    until_texts(busy)
    wait_until(lambda: texts_of_people(chat) == ["@endless talk", "@echo one", "@echo two"])
    # The second one waited for the answer to the first.
    wait_until(lambda: Response.objects.filter(chat=chat, status="completed").count() == 2)
    earlier, later = Response.objects.filter(chat=chat, agent__name="echo").order_by("created_at")
    assert earlier.finished_at is not None
    assert earlier.finished_at <= later.created_at


def test_nothing_is_queued_where_no_answer_runs(dial: Dial, alice: Person, chat: Chat) -> None:
    client = inside(dial, alice, chat)
    queue(client, "@echo at once")
    assert client.until("response.done")
    assert not QueuedTurn.objects.exists()


def test_an_event_that_is_sent_again_is_queued_and_started_once(
    dial: Dial, alice: Person, chat: Chat, busy: UampClient
) -> None:
    event_id = queue(busy, "@echo once")
    until_texts(busy, "@echo once")
    session_id = Session.objects.get(chat=chat).pk
    busy.cut()
    again = dial(alice)
    again.create_session(chat=chat.pk, resume={"session_id": session_id, "after": 0})
    again.send("input.text", text="@echo once")
    again.send("response.create", event_id=event_id, queue=True)
    until_texts(again, "@echo once")
    assert QueuedTurn.objects.count() == 1
    other = dial(alice)
    other.create_session(chat=chat.pk, resume={"session_id": session_id, "after": 0})
    other.send("input.text", text="@echo once")
    other.send("response.create", event_id=event_id, queue=True, response={"modalities": ["text"]})
    assert refused(other) == "event_id_conflict"
    stop(again)
    wait_until(lambda: Response.objects.filter(agent__name="echo", status="completed").exists())
    # Also while another answer runs, what was started is not queued again.
    again.ask("@endless talk on")
    again.until("response.created")
    late = dial(alice)
    late.create_session(chat=chat.pk, resume={"session_id": session_id, "after": 0})
    late.send("input.text", text="@echo once")
    late.send("response.create", event_id=event_id, queue=True)
    first = Response.objects.get(agent__name="echo").pk
    while late.until("response.created")[-1]["response_id"] != first:
        pass
    assert texts_of_people(chat).count("@echo once") == 1
    assert not QueuedTurn.objects.exists()


def test_a_message_whose_process_died_is_written_once(
    chat: Chat, busy: UampClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    died: list[int] = []
    started = rows.started

    def die_first(row: QueuedTurn) -> None:
        if not died:
            died.append(row.pk)
            raise RuntimeError("killed after the turn was written")
        started(row)

    monkeypatch.setattr(rows, "started", die_first)
    monkeypatch.setattr(rows, "CLAIM_SECONDS", 0.5)
    queue(busy, "@echo once")
    until_texts(busy, "@echo once")
    stop(busy)
    wait_until(lambda: bool(died) and not QueuedTurn.objects.exists())
    assert texts_of_people(chat).count("@echo once") == 1


def test_what_ends_each_process_that_starts_it_fails_at_last(
    chat: Chat, busy: UampClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def defect(_row: QueuedTurn) -> None:
        raise RuntimeError

    monkeypatch.setattr(queued_turns, "_request", defect)
    monkeypatch.setattr(rows, "CLAIM_SECONDS", 0.1)
    monkeypatch.setattr(rows, "ATTEMPTS", 3)
    queue(busy, "@echo poison")
    until_texts(busy, "@echo poison")
    stop(busy)
    wait_until(lambda: QueuedTurn.objects.get().status == "failed")
    assert (QueuedTurn.objects.get().code, texts_of_people(chat)) == (
        "internal_error",
        ["@endless talk"],
    )


def test_a_claimed_message_cannot_be_claimed_again(chat: Chat, busy: UampClient) -> None:
    queue(busy, "later")
    until_texts(busy, "later")
    now = timezone.now()
    # An answer runs.
    assert rows.due_chats(now) == []
    assert rows.claim(chat.pk, now) is None
    QueuedTurn.objects.update(waits=False)
    first = rows.claim(chat.pk, now)
    assert first is None or rows.claim(chat.pk, now) is None
    assert rows.due_chats(now) == []


def test_a_message_outlives_its_session(
    dial: Dial, alice: Person, chat: Chat, busy: UampClient
) -> None:
    queue(busy, "@echo later")
    until_texts(busy, "@echo later")
    former = Session.objects.get(chat=chat).pk
    busy.send("session.end")
    wait_until(lambda: Session.objects.get(pk=former).status == "closed")
    running = Response.objects.get(agent__name="endless").pk
    inside(dial, alice, chat).send("response.cancel", response_id=running)
    wait_until(lambda: "@echo later" in texts_of_people(chat))
    wait_until(lambda: Response.objects.filter(agent__name="echo").exists())
    assert Response.objects.get(agent__name="echo").session_id not in {None, former}


def test_a_batch_queues_its_message(
    web: httpx.Client, bob: Person, chat: Chat, busy: UampClient
) -> None:
    events = [
        {"type": "session.create", "uamp_version": "1.0", "session": {}, "chat": chat.pk},
        {"type": "input.text", "text": "@echo by a batch"},
        {"type": "response.create", "queue": True},
    ]
    answer = web.post("/uamp", json=events, headers=bob.headers)
    assert answer.status_code == 200, answer.text
    kinds = [event["type"] for event in answer.json()]
    assert "queue.updated" in kinds
    stop(busy)
    wait_until(lambda: "@echo by a batch" in texts_of_people(chat))


def test_all_answers_of_a_queued_message_count(
    busy: UampClient, chat: Chat, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queued_turns, "RETRY_SECONDS", 0.1)
    queue(busy, "@echo @endless @slow all of you")
    until_texts(busy, "@echo @endless @slow all of you")
    settings.UAMP_RESPONSES_PER_MINUTE = 1
    stop(busy)
    wait_until(lambda: QueuedTurn.objects.get().attempts == 1)
    wait_until(lambda: QueuedTurn.objects.get().status == "queued")
    assert texts_of_people(chat) == ["@endless talk"]


def test_inputs_that_came_over_http_are_used_up(chat: Chat, busy: UampClient) -> None:
    session = Session.objects.get(chat=chat)
    pending = PendingInput.objects.create(session=session, event_id="i", payload={})
    assert session.user_id is not None
    new = rows.NewQueuedTurn(
        chat_id=chat.pk,
        session_id=session.pk,
        user_id=session.user_id,
        event_id="one",
        sha256="0",
        inputs=[],
        create={},
        text="",
        files=0,
        pending_input_ids=[pending.pk],
    )
    InboundEvent.objects.create(session=session, event_id="one", sha256="0")
    # It was started before.
    assert not rows.add(new)
    assert PendingInput.objects.exists()
    InboundEvent.objects.all().delete()
    assert rows.add(new)
    assert not PendingInput.objects.exists()
