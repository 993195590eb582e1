"""Messages older than UAMP_MESSAGE_DAYS: words go, their places and the chain of the log stay."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import transaction
from django.utils import timezone

from audit_app.models import AuditRecord
from chat_app.conversation import deletion, old_messages, revisions
from chat_app.log.verification import check_log
from chat_app.models import Chat, ChatEvent, LogErasure, Message
from sessions_app.data_rights.old_messages import erase_old
from sessions_app.models import FollowUp, Response, ToolCall
from sessions_app.process import retention
from tests import factories
from tests.client import wait_until
from tests.live_server import shared_chat
from tests.sessions_app.data_rights.stored_words import rows_with

if TYPE_CHECKING:
    import httpx
    from django.contrib.auth.models import User
    from pytest_django.fixtures import Settings

    from tests.live_server import Dial, Person

WORD = "wombatword"
# What was written before this moment is too old.
NOW = 1e-9


def erase_all() -> int:
    """Erase until nothing is left to pass; return how many entries were."""
    count = 0
    while passed := erase_old(1000):
        count += passed
    return count


def spoken_chat(author: User, texts: list[str]) -> tuple[Chat, list[Message]]:
    """Return a chat with a log of messages."""
    chat = factories.chat(author, title="Plans")
    return chat, [factories.message(chat, author, text) for text in texts]


@pytest.mark.django_db(transaction=True)
def test_after_the_erasure_no_row_has_the_words_and_the_log_is_whole(
    alice: Person, bob: Person, dial: Dial, web: httpx.Client, settings: Settings
) -> None:
    chat = shared_chat(alice, bob, agents=("echo",))
    with dial(alice) as socket:
        socket.send(
            "session.create", uamp_version="1.0", session={"modalities": ["text"]}, chat=chat.pk
        )
        socket.until("session.created")
        socket.send("input.text", text=f"@echo {WORD}")
        socket.send("response.create")
        socket.until("response.done")
    answered = Response.objects.get(chat=chat)
    factories.tool_call(answered, status="done", arguments=f'{{"a": "{WORD}"}}', result=WORD)
    FollowUp.objects.create(response=answered, message_id="1", parts=[{"text": WORD}], digest="1")
    messages = f"/api/v1/chats/{chat.pk}/messages"
    turn = web.post(messages, json={"content": f"{WORD} first"}, headers=bob.headers).json()
    message_path = f"/api/v1/messages/{turn['message']['id']}"
    assert web.patch(
        message_path, json={"content": f"{WORD} edited"}, headers=bob.headers
    ).is_success
    before = dict(ChatEvent.objects.filter(chat=chat).values_list("seq", "type"))
    latest_at = Chat.objects.get(pk=chat.pk).latest_at
    stored = [row.partition(":")[0] for row in rows_with(WORD)]
    models = {"chat_app.Message", "chat_app.ChatEvent"}
    assert models | {"sessions_app.ToolCall", "sessions_app.FollowUp"} <= set(stored)

    assert erase_all() == 0
    settings.UAMP_MESSAGE_DAYS = 1
    assert erase_all() == 0
    with dial(bob) as socket:
        socket.send("session.create", uamp_version="1.0", session={}, chat=chat.pk)
        socket.until("session.created")
        settings.UAMP_MESSAGE_DAYS = NOW
        # The server does the same once a minute, perhaps now.
        erase_all()
        wait_until(lambda: rows_with(WORD) == [])
        assert socket.until("message.deleted")[-1]["user_id"] == ""

    after = dict(ChatEvent.objects.filter(chat=chat).values_list("seq", "type"))
    assert {seq: after[seq] for seq in before} == before
    summary = check_log(chat.pk)
    assert summary is not None
    assert summary.is_intact, summary.problems
    # The question, the answer and its end, what was said, and the edit of it.
    assert summary.erased == 5
    assert Chat.objects.get(pk=chat.pk).latest_at == latest_at
    rows = web.get(messages, headers=alice.headers).json()["data"]
    assert [(row["content"], row["deleted_at"] is not None) for row in rows] == [("", True)] * 3
    assert {row["name"] for row in rows} == {"alice", "bob", "echo"}
    assert web.get(f"/api/v1/search?q={WORD}", headers=alice.headers).json()["data"] == []
    records = AuditRecord.objects.filter(action="messages.erased", object_id=chat.pk)
    assert sum(int(row.detail.split()[0]) for row in records) == 3
    assert ToolCall.objects.get().arguments == "{}"


@pytest.mark.django_db
def test_younger_messages_stay_with_what_comes_after_them(settings: Settings) -> None:
    settings.UAMP_MESSAGE_DAYS = 2
    ada = factories.user("ada")
    chat, (old, young) = spoken_chat(ada, ["old", "young"])
    revisions.edit_message(
        chat_id=chat.pk, message_id=old.pk, user_id=ada.pk, content=f"{WORD} edited"
    )
    first = ChatEvent.objects.filter(chat=chat, seq=old.seq)
    first.update(created_at=timezone.now() - timedelta(days=3))
    assert erase_all() == first.count() == 1

    young.refresh_from_db()
    assert (young.content, young.deleted_at) == ("young", None)
    # The edit is younger than the message, and goes with it.
    assert rows_with(WORD) == []
    assert LogErasure.objects.get().entry == first.get().pk
    assert erase_all() == 0


@pytest.mark.django_db
def test_passes_are_bounded_continue_and_change_nothing_twice(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.UAMP_MESSAGE_DAYS = NOW
    monkeypatch.setattr(old_messages, "ENTRIES", 3)
    ada = factories.user("ada")
    chat, messages = spoken_chat(ada, [f"text {number}" for number in range(4)])
    other, _ = spoken_chat(ada, ["elsewhere"])
    assert erase_old(1000) == 3
    assert Message.objects.filter(deleted_at__isnull=False).count() == 3
    assert erase_old(1) == 1
    LogErasure.objects.update(entry=0)
    log: list[Any] = list(ChatEvent.objects.filter(seq__lte=4, chat=chat).order_by("seq").values())
    assert erase_all() > 0
    assert list(ChatEvent.objects.filter(seq__lte=4, chat=chat).order_by("seq").values()) == log
    assert Message.objects.filter(deleted_at__isnull=True).count() == 0
    deleted = ChatEvent.objects.filter(type="message.deleted")
    assert deleted.count() == len(messages) + 1
    assert set(deleted.values_list("chat_id", flat=True)) == {chat.pk, other.pk}


@pytest.mark.django_db
def test_what_was_deleted_before_leaves_the_log_too(settings: Settings) -> None:
    settings.UAMP_MESSAGE_DAYS = NOW
    ada = factories.user("ada")
    chat, (message,) = spoken_chat(ada, [WORD])
    deletion.delete_message(chat_id=chat.pk, message_id=message.pk, user_id=ada.pk)
    assert rows_with(WORD)
    assert retention.sweep() > 0
    assert rows_with(WORD) == []
    assert not AuditRecord.objects.filter(action="messages.erased").exists()


@pytest.mark.django_db
def test_a_chat_deleted_in_the_meantime_is_skipped(settings: Settings) -> None:
    chat, (message,) = spoken_chat(factories.user("ada"), ["gone"])
    place = message.seq
    Chat.objects.filter(pk=chat.pk).delete()
    with transaction.atomic():
        assert old_messages.erase_entries(chat.pk, [place]) == (0, [])
