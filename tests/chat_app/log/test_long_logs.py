"""The check of the rows of a long chat: memory that does not grow, and a log whose end is gone."""

from __future__ import annotations

import tracemalloc
from io import StringIO
from typing import TYPE_CHECKING

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from chat_app.log import entries
from chat_app.log.checkpoints import checkpoint_of
from chat_app.log.verification import check_log
from chat_app.models import Chat, ChatEvent, LogCheckpoint, Message
from signing_app import owner_keys
from tests import factories
from uamp.logs import spool
from uamp.logs.check import LogProblem, LogProblemKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.contrib.auth.models import User

pytestmark = pytest.mark.django_db

SHORT, LONG = 400, 3_200


@pytest.fixture(autouse=True)
def fresh_keys() -> Iterator[None]:
    """Forget the keys of other tests, whose rows are gone."""
    owner_keys.forget()
    yield
    owner_keys.forget()


@pytest.fixture
def ada() -> User:
    """Return the person who writes."""
    return factories.user()


def long_chat(ada: User, count: int) -> Chat:
    """Return a chat with this many messages, in one append."""
    chat = factories.chat(ada)
    at = timezone.now()
    new = [
        entries.NewMessage(
            id=f"msg_{number}_of_{count}",
            role="user",
            at=at,
            content=f"number {number}",
            sender_user_id=ada.pk,
        )
        for number in range(count)
    ]
    entries.append(chat.pk, [entries.message_event(chat.pk, message) for message in new], at=at)
    checkpoint_of(chat.pk)
    return Chat.objects.get(pk=chat.pk)


def nothing(_: Chat) -> None:
    """Leave the rows as they are."""


def change_all(chat: Chat) -> None:
    Message.objects.filter(chat=chat).update(name="grace")


def remove_all(chat: Chat) -> None:
    Message.objects.filter(chat=chat).delete()


def peak_of(chat: Chat) -> int:
    """Check a chat with the command, and return the largest size of Python's memory, in bytes."""
    tracemalloc.start()
    try:
        call_command("audit_log", chat.pk, stdout=StringIO())
    except CommandError as error:
        assert "were changed" in str(error)  # noqa: PT017 some of the chats are intact
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak


@pytest.mark.sampled(1)
@pytest.mark.parametrize("change", [nothing, change_all, remove_all])
def test_memory_does_not_grow_with_the_messages(
    ada: User, monkeypatch: pytest.MonkeyPatch, change: Callable[[Chat], None]
) -> None:
    monkeypatch.setattr(spool, "BYTES_IN_MEMORY", 10_000)
    chats = [long_chat(ada, count) for count in (SHORT, LONG)]
    for chat in chats:
        change(chat)
    peak_of(chats[0])  # what is imported and cached once
    short, long = map(peak_of, chats)
    assert long < 1.5 * short


def test_all_messages_of_a_long_chat_are_compared(ada: User) -> None:
    """Those that were changed are read again, and those that are gone looked up, page by page."""
    chat = long_chat(ada, SHORT)
    Message.objects.filter(chat=chat, seq__lte=SHORT // 2).update(name="grace")
    Message.objects.filter(chat=chat, seq__gt=SHORT // 2).delete()
    summary = check_log(chat.pk)
    assert summary is not None
    assert (summary.entries, summary.problem_count) == (SHORT, SHORT)
    assert summary.problems[0] == LogProblem(kind=LogProblemKind.MESSAGE_CHANGED, seq=1)
    Message.objects.filter(chat=chat).delete()
    gone = check_log(chat.pk)
    assert gone is not None
    assert (gone.problem_count, gone.problems[99].seq) == (SHORT, 100)
    assert {problem.kind for problem in gone.problems} == {LogProblemKind.MESSAGE_MISSING}


def test_a_log_that_was_cut_with_its_chat_is_shown_by_its_signed_head(ada: User) -> None:
    """The attacker removes the last entries and writes the chat's row as it was before them."""
    chat = factories.chat(ada)
    factories.message(chat, ada, "kept")
    before = Chat.objects.get(pk=chat.pk)
    factories.message(chat, ada, "removed")
    checkpoint_of(chat.pk)
    assert check_log(chat.pk) is not None
    ChatEvent.objects.filter(chat=chat, seq=2).delete()
    Message.objects.filter(chat=chat, seq=2).delete()
    before.save()
    summary = check_log(chat.pk)
    assert summary is not None
    assert summary.problems == (LogProblem(kind=LogProblemKind.ENTRY_MISSING, seq=2),)
    LogCheckpoint.objects.all().delete()
    summary = check_log(chat.pk)
    assert summary is not None
    assert summary.is_intact


@pytest.mark.parametrize("column", ["payload", "content_items"])
def test_a_number_that_has_no_canonical_form_shows(ada: User, column: str) -> None:
    """A number beyond the doubles, written by SQL: both databases take it."""
    chat = factories.chat(ada)
    factories.message(chat, ada, "one")
    message = factories.message(chat, ada, "two")
    model = ChatEvent if column == "payload" else Message
    value = '{"message": {"content": 1e400}}' if column == "payload" else "[1e400]"
    with connection.cursor() as cursor:
        table = connection.ops.quote_name(model._meta.db_table)
        cursor.execute(
            f"UPDATE {table} SET {column} = %s WHERE chat_id = %s AND seq = %s",  # noqa: S608 ours
            [value, chat.pk, message.seq],
        )
    summary = check_log(chat.pk)
    assert summary is not None
    kinds = {problem.kind for problem in summary.problems}
    assert kinds == (
        {LogProblemKind.ENTRY_CHANGED, LogProblemKind.MESSAGE_CHANGED}
        if column == "payload"
        else {LogProblemKind.MESSAGE_CHANGED}
    )


@pytest.mark.parametrize("seq", [1, 250, SHORT])
def test_a_signed_head_of_any_page_is_compared(ada: User, seq: int) -> None:
    chat = long_chat(ada, SHORT)
    row = LogCheckpoint.objects.get(chat=chat)
    if seq == SHORT:
        ChatEvent.objects.filter(chat=chat, seq=seq).update(chain_hash=b"\1" * 32)
    else:
        LogCheckpoint.objects.filter(pk=row.pk).update(seq=seq)
    summary = check_log(chat.pk)
    assert summary is not None
    expected = LogProblem(kind=LogProblemKind.CHECKPOINT_CHANGED, seq=seq)
    assert expected in summary.problems
