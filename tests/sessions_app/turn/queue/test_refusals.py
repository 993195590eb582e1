"""Queued messages that are refused, or whose sender lost access."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from agents_app.models import Agent
from chat_app.members.participants import remove_participant
from chat_app.models import Message, Participant
from sessions_app.models import ApiKey, QueuedTurn, Response
from sessions_app.queue import rows
from sessions_app.turn import queued_turns
from tests.client import UampClient, wait_until
from tests.sessions_app.turn.queue.messages import inside, queue, stop, texts_of_people, until_texts

if TYPE_CHECKING:
    import httpx

    from chat_app.models import Chat
    from tests.live_server import Dial, Person


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
    wait_until(lambda: "@echo after it" in texts_of_people(chat))
    wait_until(lambda: QueuedTurn.objects.count() == 1)
    row = QueuedTurn.objects.get()
    assert (row.status, row.code) == ("failed", "message_not_found")
    (item,) = web.get(f"/api/v1/chats/{chat.pk}/queue", headers=bob.headers).json()["data"]
    assert item["reason"]
    # It is tried again where its person asks.
    QueuedTurn.objects.update(inputs=[{"type": "input.text", "text": "@echo at last"}])
    busy.send("queue.start", item_id=str(row.pk))
    wait_until(lambda: "@echo at last" in texts_of_people(chat))
    wait_until(lambda: not QueuedTurn.objects.exists())


def test_a_refusal_that_passes_is_tried_again(
    chat: Chat, busy: UampClient, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queued_turns, "RETRY_SECONDS", 0.2)
    queue(busy, "@echo patient")
    until_texts(busy, "@echo patient")
    settings.UAMP_RESPONSES_PER_TURN = 0
    stop(busy)
    wait_until(lambda: QueuedTurn.objects.get().attempts >= 2)
    assert QueuedTurn.objects.get().status in {"queued", "starting"}
    settings.UAMP_RESPONSES_PER_TURN = 20
    wait_until(lambda: "@echo patient" in texts_of_people(chat))


def test_a_refused_message_is_not_retried_forever(
    busy: UampClient, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queued_turns, "RETRY_SECONDS", 0.1)
    monkeypatch.setattr(rows, "ATTEMPTS", 2)
    queue(busy, "@echo patient")
    until_texts(busy, "@echo patient")
    settings.UAMP_RESPONSES_PER_TURN = 0
    stop(busy)
    wait_until(lambda: QueuedTurn.objects.get().status == "failed")
    assert QueuedTurn.objects.get().code == "queue_full"


def test_nothing_is_sent_for_a_member_who_left(
    dial: Dial, bob: Person, chat: Chat, busy: UampClient
) -> None:
    other = inside(dial, bob, chat)
    queue(other, "@echo of bob")
    until_texts(busy, "@echo of bob")
    member = Participant.objects.get(chat=chat, user=bob.user)
    remove_participant(chat_id=chat.pk, participant_id=member.pk, removed_by=bob.user)
    stop(busy)
    until_texts(busy)
    assert texts_of_people(chat) == ["@endless talk"]


@pytest.mark.parametrize("how", ["removed", "deactivated"])
def test_nothing_is_sent_for_a_person_who_may_no_longer_act(
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
    while not (items := busy.until("queue.updated")[-1]["items"]) or items[0].get("code") is None:
        pass
    assert (items[0]["status"], items[0]["code"]) == ("failed", "unauthorized")
    assert "removed from the chat, or deactivated" in items[0]["reason"]
    assert texts_of_people(chat) == ["@endless talk"]


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
    assert (row.code, texts_of_people(chat)) == ("unauthorized", ["@endless talk"])
    assert "revoked or has expired" in row.reason


def test_a_message_whose_agent_was_switched_off_says_so(
    dial: Dial, bob: Person, chat: Chat, busy: UampClient
) -> None:
    session_client = dial(bob)
    session_client.create_session(chat=chat.pk, agent="echo")
    queue(session_client, "to the session's agent")
    queue(inside(dial, bob, chat), "@echo to a mention")
    until_texts(busy, "to the session's agent", "@echo to a mention")
    Agent.objects.filter(name="echo").update(is_enabled=False)
    stop(busy)
    stopped = busy.until("agent.stopped")[-1]
    assert (stopped["agent"], stopped["reason"]) == ("echo", "disabled")
    wait_until(lambda: QueuedTurn.objects.count() == 1)
    row = QueuedTurn.objects.get()
    assert (row.text, row.code) == ("to the session's agent", "agent_disabled")
    assert texts_of_people(chat) == ["@endless talk", "@echo to a mention"]
    assert not Response.objects.filter(agent__name="echo").exists()
