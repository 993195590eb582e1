"""Messages that are queued while agents answer: sent in order, once, seen by all, and refused."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from agents_app.models import Agent
from chat_app.members.participants import remove_participant
from chat_app.models import Message, Participant
from sessions_app.models import ApiKey, InboundEvent, PendingInput, QueuedTurn, Response, Session
from sessions_app.process import periodic
from sessions_app.queue import rows
from sessions_app.turn import queued_turns
from tests import factories
from tests.client import UampClient, wait_until
from tests.live_server import Dial, Person, quick_agent, shared_chat

if TYPE_CHECKING:
    import httpx
    from pytest_django import Settings

    from chat_app.models import Chat


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periodic, "QUEUE_SECONDS", 0.1)


@pytest.fixture
def chat(alice: Person, bob: Person) -> Chat:
    """Give a chat of alice and bob with an agent that speaks until it is stopped."""
    quick_agent("endless", "slow", words=2000)
    return shared_chat(alice, bob, agents=("echo", "endless", "slow"))


@pytest.fixture
def busy(dial: Dial, alice: Person, chat: Chat) -> UampClient:
    """Return alice's socket; an answer runs in the chat."""
    client = inside(dial, alice, chat)
    client.ask("@endless talk")
    client.until("response.created")
    return client


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


def until_texts(client: UampClient, *wanted: str) -> None:
    """Wait until the queue has these texts."""
    while texts(client) != list(wanted):
        pass


def stop(client: UampClient) -> None:
    """Stop the answer that runs."""
    client.send("response.cancel")


def said(chat: Chat) -> list[str]:
    """Return what people wrote, in order."""
    return list(
        Message.objects.filter(chat=chat, role="user")
        .order_by("seq")
        .values_list("content", flat=True)
    )


def refused(client: UampClient) -> str:
    """Return the code of the error that comes."""
    code: str = client.until("session.error", "response.error")[-1]["error"]["code"]
    return code


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
    assert said(chat) == ["@endless talk"]
    stop(busy)
    created: dict[str, Any] = {}
    while created.get("content") != "@echo one":
        created = busy.until("message.created")[-1]["message"]
    assert (created["content"], created["client_event_id"]) == ("@echo one", first)
    until_texts(busy)
    wait_until(lambda: said(chat) == ["@endless talk", "@echo one", "@echo two"])
    # The second one waited for the answer to the first.
    wait_until(lambda: Response.objects.filter(chat=chat, status="completed").count() == 2)
    one, two = Response.objects.filter(chat=chat, agent__name="echo").order_by("created_at")
    assert one.finished_at is not None
    assert one.finished_at <= two.created_at


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
    assert said(chat).count("@echo once") == 1
    assert not QueuedTurn.objects.exists()


def test_the_queue_has_room_for_so_many(
    chat: Chat, busy: UampClient, dial: Dial, bob: Person, settings: Settings
) -> None:
    settings.UAMP_QUEUED_PER_USER = 1
    settings.UAMP_QUEUED_PER_CHAT = 2
    queue(busy, "one")
    until_texts(busy, "one")
    queue(busy, "two")
    assert refused(busy) == "queue_full"
    other = inside(dial, bob, chat)
    queue(other, "three")
    until_texts(other, "one", "three")
    settings.UAMP_QUEUED_PER_USER = 9
    queue(other, "four")
    assert refused(other) == "queue_full"
    assert QueuedTurn.objects.count() == 2


def test_what_is_queued_is_bounded_in_bytes_and_belongs_to_a_chat_of_people(
    busy: UampClient, dial: Dial, alice: Person, settings: Any
) -> None:
    settings.UAMP_MESSAGE_BYTES = 1000
    queue(busy, "x" * 40_000)
    assert refused(busy) == "event_too_large"
    private = dial(alice)
    private.create_session(agent="echo")
    queue(private, "hello")
    assert refused(private) == "invalid_event"
    busy.send("response.create", queue=True, replaces="msg_1")
    assert refused(busy) == "invalid_event"
    assert not QueuedTurn.objects.exists()


def test_who_removes_and_starts_what(
    dial: Dial, bob: Person, mallory: Person, web: httpx.Client, chat: Chat, busy: UampClient
) -> None:
    other = inside(dial, bob, chat)
    queue(busy, "@echo of alice")
    until_texts(other, "@echo of alice")
    queue(other, "@echo of bob")
    until_texts(other, "@echo of alice", "@echo of bob")
    mine, theirs = map(str, QueuedTurn.objects.order_by("id").values_list("id", flat=True))
    other.send("queue.remove", item_id=mine)
    assert refused(other) == "forbidden"
    other.send("queue.start", item_id=mine)
    assert refused(other) == "forbidden"
    # The owner of the chat removes, and does not speak for others.
    busy.send("queue.start", item_id=theirs)
    assert refused(busy) == "forbidden"
    for unknown in ("999999", "x", "1" * 30):
        other.send("queue.remove", item_id=unknown)
        assert refused(other) == "message_not_found"
    url = f"/api/v1/chats/{chat.pk}/queue"
    assert web.get(url, headers=mallory.headers).status_code == 404
    assert web.delete(f"{url}/{mine}", headers=mallory.headers).status_code == 404
    assert web.post(f"{url}/{mine}/start", headers=mallory.headers).status_code == 404
    assert web.delete(f"{url}/{mine}", headers=bob.headers).status_code == 403
    data = web.get(url, headers=bob.headers).json()["data"]
    assert [(one["id"], one["text"]) for one in data] == [
        (mine, "@echo of alice"),
        (theirs, "@echo of bob"),
    ]
    other.send("queue.start", item_id=theirs)
    wait_until(lambda: "@echo of bob" in said(chat))
    assert Response.objects.get(agent__name="endless").finished_at is None
    assert web.delete(f"{url}/{theirs}", headers=bob.headers).status_code == 404
    busy.send("queue.remove", item_id=mine)
    until_texts(other)
    assert "@echo of alice" not in said(chat)


def test_an_owner_removes_what_others_queued(
    dial: Dial, alice: Person, bob: Person, web: httpx.Client, chat: Chat, busy: UampClient
) -> None:
    other = inside(dial, bob, chat)
    queue(other, "of bob")
    until_texts(busy, "of bob")
    row = QueuedTurn.objects.get()
    url = f"/api/v1/chats/{chat.pk}/queue/{row.pk}"
    assert web.delete(url, headers=alice.headers).status_code == 204
    assert not QueuedTurn.objects.exists()


def test_a_refused_message_says_why_and_holds_up_no_other(
    dial: Dial, bob: Person, web: httpx.Client, chat: Chat, busy: UampClient
) -> None:
    answered = Message.objects.get(chat=chat)
    queue(busy, "@echo about that", reply_to=answered.pk)
    until_texts(busy, "@echo about that")
    QueuedTurn.objects.update(
        inputs=[{"type": "input.text", "text": "@echo about that", "reply_to": "msg_gone"}]
    )
    other = inside(dial, bob, chat)
    queue(other, "@echo after it")
    stop(busy)
    wait_until(lambda: "@echo after it" in said(chat))
    wait_until(lambda: QueuedTurn.objects.count() == 1)
    row = QueuedTurn.objects.get()
    assert (row.status, row.code) == ("failed", "message_not_found")
    (item,) = web.get(f"/api/v1/chats/{chat.pk}/queue", headers=bob.headers).json()["data"]
    assert item["reason"]
    # It is tried again where its person asks.
    QueuedTurn.objects.update(inputs=[{"type": "input.text", "text": "@echo at last"}])
    busy.send("queue.start", item_id=str(row.pk))
    wait_until(lambda: "@echo at last" in said(chat))
    wait_until(lambda: not QueuedTurn.objects.exists())


def test_a_refusal_that_passes_is_tried_again(
    chat: Chat, busy: UampClient, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queued_turns, "LATER_SECONDS", 0.2)
    queue(busy, "@echo patient")
    until_texts(busy, "@echo patient")
    settings.UAMP_RESPONSES_PER_TURN = 0
    stop(busy)
    wait_until(lambda: QueuedTurn.objects.get().attempts >= 2)
    assert QueuedTurn.objects.get().status in {"queued", "starting"}
    settings.UAMP_RESPONSES_PER_TURN = 20
    wait_until(lambda: "@echo patient" in said(chat))


def test_a_refusal_is_not_tried_for_ever(
    busy: UampClient, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queued_turns, "LATER_SECONDS", 0.1)
    monkeypatch.setattr(rows, "ATTEMPTS", 2)
    queue(busy, "@echo patient")
    until_texts(busy, "@echo patient")
    settings.UAMP_RESPONSES_PER_TURN = 0
    stop(busy)
    wait_until(lambda: QueuedTurn.objects.get().status == "failed")
    assert QueuedTurn.objects.get().code == "queue_full"


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
    assert said(chat).count("@echo once") == 1


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
    assert (QueuedTurn.objects.get().code, said(chat)) == ("internal_error", ["@endless talk"])


def test_a_claimed_message_is_no_one_elses(chat: Chat, busy: UampClient) -> None:
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


def test_nothing_is_sent_for_one_who_left(
    dial: Dial, bob: Person, chat: Chat, busy: UampClient
) -> None:
    other = inside(dial, bob, chat)
    queue(other, "@echo of bob")
    until_texts(busy, "@echo of bob")
    member = Participant.objects.get(chat=chat, user=bob.user)
    remove_participant(chat_id=chat.pk, participant_id=member.pk, removed_by=bob.user)
    stop(busy)
    until_texts(busy)
    assert said(chat) == ["@endless talk"]


@pytest.mark.parametrize("how", ["removed", "deactivated"])
def test_nothing_is_sent_for_one_who_may_not_act_any_more(
    dial: Dial, alice: Person, bob: Person, chat: Chat, busy: UampClient, how: str
) -> None:
    other = inside(dial, bob, chat)
    queue(other, "@echo of bob")
    until_texts(busy, "@echo of bob")
    if how == "removed":
        member = Participant.objects.get(chat=chat, user=bob.user)
        remove_participant(chat_id=chat.pk, participant_id=member.pk, removed_by=alice.user)
    else:
        bob.user.is_active = False
        bob.user.save()
    stop(busy)
    while not (shown := busy.until("queue.updated")[-1]["items"]) or shown[0].get("code") is None:
        pass
    assert (shown[0]["status"], shown[0]["code"]) == ("failed", "unauthorized")
    assert "removed from the chat, or deactivated" in shown[0]["reason"]
    assert said(chat) == ["@endless talk"]


@pytest.mark.parametrize("how", ["revoked", "expired"])
def test_nothing_is_sent_with_a_key_that_has_ended(
    dial: Dial, bob: Person, chat: Chat, busy: UampClient, how: str
) -> None:
    other = inside(dial, bob, chat)
    queue(other, "@echo of bob")
    until_texts(busy, "@echo of bob")
    key = ApiKey.objects.filter(user=bob.user)
    at = timezone.now()
    assert key.update(**({"revoked_at": at} if how == "revoked" else {"expires_at": at}))
    stop(busy)
    wait_until(lambda: QueuedTurn.objects.get().status == "failed")
    row = QueuedTurn.objects.get()
    assert (row.code, said(chat)) == ("unauthorized", ["@endless talk"])
    assert "revoked or has expired" in row.reason


def test_a_message_whose_agent_was_switched_off_says_so(
    dial: Dial, bob: Person, chat: Chat, busy: UampClient
) -> None:
    named = dial(bob)
    named.create_session(chat=chat.pk, agent="echo")
    queue(named, "to the session's agent")
    queue(inside(dial, bob, chat), "@echo to a mention")
    until_texts(busy, "to the session's agent", "@echo to a mention")
    Agent.objects.filter(name="echo").update(is_enabled=False)
    stop(busy)
    stopped = busy.until("agent.stopped")[-1]
    assert (stopped["agent"], stopped["reason"]) == ("echo", "disabled")
    wait_until(lambda: QueuedTurn.objects.count() == 1)
    row = QueuedTurn.objects.get()
    assert (row.text, row.code) == ("to the session's agent", "agent_disabled")
    assert said(chat) == ["@endless talk", "@echo to a mention"]
    assert not Response.objects.filter(agent__name="echo").exists()


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
    wait_until(lambda: "@echo later" in said(chat))
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
    wait_until(lambda: "@echo by a batch" in said(chat))


def test_the_admin_shows_the_queue(chat: Chat, busy: UampClient, client: Any) -> None:
    queue(busy, "of alice")
    until_texts(busy, "of alice")
    client.force_login(factories.superuser())
    row = QueuedTurn.objects.get()
    assert client.get("/admin/sessions_app/queuedturn/").status_code == 200
    page = client.get(f"/admin/sessions_app/queuedturn/{row.pk}/change/")
    assert page.status_code == 200


def test_a_message_that_is_being_sent_is_not_removed(chat: Chat, busy: UampClient) -> None:
    queue(busy, "later")
    until_texts(busy, "later")
    QueuedTurn.objects.update(status="starting", due_at=timezone.now() + timedelta(hours=1))
    busy.send("queue.remove", item_id=str(QueuedTurn.objects.get().pk))
    assert refused(busy) == "message_not_found"


def test_what_is_queued_counts_as_text_of_the_day(busy: UampClient, settings: Any) -> None:
    settings.UAMP_TEXT_BYTES_PER_DAY = 1000
    queue(busy, "x" * 2000)
    assert refused(busy) == "rate_limited"
    assert not QueuedTurn.objects.exists()


def test_all_answers_of_a_queued_message_count(
    busy: UampClient, chat: Chat, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queued_turns, "LATER_SECONDS", 0.1)
    queue(busy, "@echo @endless @slow all of you")
    until_texts(busy, "@echo @endless @slow all of you")
    settings.UAMP_RESPONSES_PER_MINUTE = 1
    stop(busy)
    wait_until(lambda: QueuedTurn.objects.get().attempts == 1)
    wait_until(lambda: QueuedTurn.objects.get().status == "queued")
    assert said(chat) == ["@endless talk"]


def test_inputs_that_came_over_http_are_used_up(chat: Chat, busy: UampClient) -> None:
    session = Session.objects.get(chat=chat)
    kept = PendingInput.objects.create(session=session, event_id="i", payload={})
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
        pending_input_ids=[kept.pk],
    )
    InboundEvent.objects.create(session=session, event_id="one", sha256="0")
    # It was started before.
    assert not rows.add(new)
    assert PendingInput.objects.exists()
    InboundEvent.objects.all().delete()
    assert rows.add(new)
    assert not PendingInput.objects.exists()
