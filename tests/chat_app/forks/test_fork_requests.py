"""Requests for a fork: who may make one, what a repeat leads to, and what a fork may cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import transaction

from chat_app.conversation.errors import MessageNotFound
from chat_app.forks import forking
from chat_app.forks.copies import ForkTooLarge, history_until
from chat_app.members.participants import remove_participant
from chat_app.models import Chat, ChatOrigin, Message, Participant
from tests import factories
from tests.chat_app.forks.forked_chats import fork, texts

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

pytestmark = pytest.mark.django_db


def test_a_stranger_is_answered_like_for_a_chat_that_is_not_there() -> None:
    alice, mallory = factories.user("alice"), factories.user("mallory")
    source = factories.chat(alice)
    message = factories.message(source, alice)
    elsewhere = factories.chat(mallory)
    for chat_id, message_id in (
        (source.pk, message.pk),
        (elsewhere.pk, message.pk),
        ("chat_none", message.pk),
        (elsewhere.pk, "msg_none"),
    ):
        with pytest.raises(MessageNotFound):
            forking.fork_chat(
                chat_id=chat_id, message_id=message_id, forked_by=mallory, admit=lambda _size: None
            )
    assert Chat.objects.count() == 2


def test_a_person_who_is_removed_while_the_history_is_read_gets_no_fork(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alice, bob = factories.user("alice"), factories.user("bob")
    source = factories.chat(alice, bob)
    message = factories.message(source, alice)
    member = Participant.objects.get(chat=source, user=bob)

    def read_late(of: Message) -> Any:
        history = history_until(of)
        remove_participant(chat_id=source.pk, removed_by=alice, participant_id=member.pk)
        return history

    monkeypatch.setattr(forking, "history_until", read_late)
    with pytest.raises(MessageNotFound):
        fork(message, bob)
    assert Chat.objects.count() == 1


def test_the_same_key_leads_to_the_same_chat() -> None:
    alice, bob = factories.user("alice"), factories.user("bob")
    source = factories.chat(alice, bob)
    first, second = (factories.message(source, alice, text) for text in ("one", "two"))
    admitted: list[int] = []
    chat = fork(first, bob, key="k", admit=admitted.append)
    assert fork(first, bob, key="k", admit=admitted.append) == chat
    assert admitted == [len("one") + len("[]")]
    others = [
        fork(first, bob, key="l"),
        fork(second, bob, key="k"),
        fork(first, alice, key="k"),
        fork(first, bob),
        fork(first, bob),
    ]
    assert len({chat, *others}) == 6


def test_a_repeat_that_overtakes_the_first_request_finds_its_chat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alice = factories.user("alice")
    message = factories.message(factories.chat(alice), alice)
    chats: list[Any] = []

    def read_late(of: Message) -> Any:
        history = history_until(of)
        if not chats:
            chats.append(None)
            chats[0] = fork(message, alice, key="k")
        return history

    monkeypatch.setattr(forking, "history_until", read_late)
    with transaction.atomic():
        assert fork(message, alice, key="k") == chats[0]
    assert ChatOrigin.objects.count() == 1


def test_a_fork_has_bounds(settings: Settings) -> None:
    alice = factories.user("alice")
    source = factories.chat(alice)
    messages = [factories.message(source, alice, "x" * 500) for _ in range(3)]
    settings.UAMP_FORK_MESSAGES = 2
    fork(messages[1], alice)
    with pytest.raises(ForkTooLarge, match="2 messages"):
        fork(messages[2], alice)
    settings.UAMP_FORK_MESSAGES, settings.UAMP_FORK_BYTES = 10, 2 * 502
    fork(messages[1], alice)
    with pytest.raises(ForkTooLarge, match="1004 bytes"):
        fork(messages[2], alice)
    wide = factories.message(factories.chat(alice), alice, "\N{GRINNING FACE}" * 300)
    with pytest.raises(ForkTooLarge):
        fork(wide, alice)
    assert Chat.objects.filter(origin__isnull=False).count() == 2


def test_a_fork_costs_as_many_queries_for_a_long_history_as_for_a_short_one(
    django_assert_max_num_queries: Any,
) -> None:
    alice = factories.user("alice")
    source = factories.chat(alice, factories.agent("echo"))
    for number in range(120):
        last = factories.message(source, alice, f"message {number}")
    with django_assert_max_num_queries(35):
        assert len(texts(fork(last, alice))) == 120
