"""The hash chain of a chat's log in its rows: written with each entry, and what a check finds."""

from __future__ import annotations

from datetime import UTC, datetime
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from chat_app.conversation.deletion import delete_message
from chat_app.conversation.erasure import erase_in_chat
from chat_app.conversation.revisions import edit_message
from chat_app.forks.forking import fork_chat
from chat_app.log import chain, verification
from chat_app.log.retention import empty_chats
from chat_app.log.verification import check_log
from chat_app.models import Chat, ChatEvent, Message
from tests import factories
from uamp.logs.check import LogProblemKind, LogSummary

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.contrib.auth.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    """Return the person who writes."""
    return factories.user()


@pytest.fixture
def chat(ada: User) -> Chat:
    """Return a chat with five messages: the second was edited, the third deleted."""
    new_chat = factories.chat(ada)
    ids = [factories.message(new_chat, ada, f"number {n} é 1.5 \U0001f600").pk for n in range(5)]
    edit_message(chat_id=new_chat.pk, message_id=ids[1], user_id=ada.pk, content="edited")
    delete_message(chat_id=new_chat.pk, message_id=ids[2], user_id=ada.pk)
    return Chat.objects.get(pk=new_chat.pk)


def log_summary(chat: Chat, **options: Any) -> LogSummary:
    """Return the findings of a check of a chat."""
    summary = check_log(chat.pk, **options)
    assert summary is not None
    return summary


def entry_of(chat: Chat, text: str) -> ChatEvent:
    """Return the entry that announced a message with a text."""
    seq = Message.objects.filter(chat=chat, content__startswith=text).values_list("seq", flat=True)
    return ChatEvent.objects.get(chat=chat, seq=seq.get())


def test_what_the_services_write_is_intact(
    chat: Chat, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "PAGE", 2)
    summary = log_summary(chat)
    assert summary.problems == ()
    assert (summary.entries, summary.unchained, summary.chained_from) == (chat.last_seq, 0, 1)
    assert chat.chain_seq == chat.last_seq
    end = log_summary(chat, last=3)
    assert end.problems == ()
    assert (end.entries, end.chain_hash) == (3, summary.chain_hash)
    erase_in_chat(ada.pk, chat_id=chat.pk, pseudonym="erased-1")
    erased = log_summary(chat)
    assert erased.problems == ()
    assert erased.erased >= 5
    assert "number" not in str(list(ChatEvent.objects.filter(chat=chat).values_list("payload")))
    erase_in_chat(ada.pk, chat_id=chat.pk, pseudonym="erased-2")
    assert log_summary(chat).problems == ()
    empty_chats([chat.pk])
    assert log_summary(chat).problems == ()
    assert check_log("chat_none") is None


def change_a_byte_of_the_log(chat: Chat) -> None:
    """Change one byte of a stored payload, in SQL."""
    table, text = ChatEvent._meta.db_table, "payload"
    if connection.vendor == "postgresql":
        text = "payload::text"
    changed = f"replace({text}, 'number 3', 'number 4')"
    if connection.vendor == "postgresql":
        changed = f"({changed})::jsonb"
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {table} SET payload = {changed} WHERE chat_id = %s",  # noqa: S608 names of ours
            [chat.pk],
        )


def change_a_byte_of_a_message(chat: Chat) -> None:
    Message.objects.filter(chat=chat, content__startswith="number 3").update(content="number 4")


def show_a_former_text(chat: Chat) -> None:
    first = ChatEvent.objects.filter(chat=chat, type="message.created").order_by("seq")[1]
    Message.objects.filter(chat=chat, content="edited").update(
        content=first.payload["message"]["content"], revision=None
    )


def mark_a_message_as_deleted(chat: Chat) -> None:
    Message.objects.filter(chat=chat, content__startswith="number 3").update(
        content="", deleted_at=chat.created_at
    )


def remove_a_message(chat: Chat) -> None:
    Message.objects.filter(chat=chat, content__startswith="number 3").delete()


def remove_an_entry(chat: Chat) -> None:
    entry_of(chat, "number 3").delete()


def cut_the_log(chat: Chat) -> None:
    ChatEvent.objects.filter(chat=chat, seq=chat.last_seq).delete()


def put_an_entry_in(chat: Chat) -> None:
    last = ChatEvent.objects.get(chat=chat, seq=chat.last_seq)
    last.pk, last.seq, last.response_id = None, chat.last_seq + 1, "resp_forged"
    last.save(force_insert=True)
    Chat.objects.filter(pk=chat.pk).update(last_seq=chat.last_seq + 1)


def change_a_text_beside_its_digest(chat: Chat) -> None:
    """Change a text in the message and in its entry, which keeps the digest of what it was."""
    entry = entry_of(chat, "number 3")
    chain.erase(entry, {"message": {**entry.payload["message"], "content": "number 4"}})
    entry.save()
    change_a_byte_of_a_message(chat)


def delete_another_message_beside_the_digest(chat: Chat) -> None:
    """Name another message in the entry of a deletion, which keeps its digest; hide that one."""
    entry = ChatEvent.objects.get(chat=chat, type="message.deleted")
    other = Message.objects.get(content__startswith="number 3")
    chain.erase(entry, {**entry.payload, "message_id": other.pk})
    entry.save()
    mark_a_message_as_deleted(chat)


def write_as_another(chat: Chat) -> None:
    Message.objects.filter(chat=chat, content__startswith="number 3").update(name="grace")


def be_sent_by_another(chat: Chat) -> None:
    other = factories.user("grace")
    Message.objects.filter(chat=chat, content__startswith="number 3").update(sender_user=other)


def answer_for_an_agent(chat: Chat) -> None:
    Message.objects.filter(chat=chat, content__startswith="number 3").update(role="assistant")


def claim_a_response(chat: Chat) -> None:
    rows = Message.objects.filter(chat=chat, content__startswith="number 3")
    rows.update(response_id="resp_forged")


def change_the_row(**values: Any) -> Callable[[Chat], None]:
    """Return a change of columns of a message."""

    def change(chat: Chat) -> None:
        Message.objects.filter(chat=chat, content__startswith="number 3").update(**values)

    return change


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (change_a_text_beside_its_digest, LogProblemKind.MESSAGE_UNVERIFIED),
        (delete_another_message_beside_the_digest, LogProblemKind.MESSAGE_CHANGED),
        (write_as_another, LogProblemKind.MESSAGE_CHANGED),
        (be_sent_by_another, LogProblemKind.MESSAGE_CHANGED),
        (answer_for_an_agent, LogProblemKind.MESSAGE_CHANGED),
        (claim_a_response, LogProblemKind.MESSAGE_CHANGED),
        *(
            (change_the_row(**{name: value}), LogProblemKind.MESSAGE_CHANGED)
            for name, value in {
                "created_at": datetime(2026, 1, 2, tzinfo=UTC),
                "reply_to": "msg_other",
                "thread": "msg_other",
                "copied_from": "msg_other",
                "transport": "a2a",
            }.items()
        ),
        (change_a_byte_of_the_log, LogProblemKind.ENTRY_CHANGED),
        (change_a_byte_of_a_message, LogProblemKind.MESSAGE_CHANGED),
        (show_a_former_text, LogProblemKind.MESSAGE_CHANGED),
        (mark_a_message_as_deleted, LogProblemKind.MESSAGE_CHANGED),
        (remove_a_message, LogProblemKind.MESSAGE_MISSING),
        (remove_an_entry, LogProblemKind.ENTRY_MISSING),
        (cut_the_log, LogProblemKind.ENTRY_MISSING),
        (put_an_entry_in, LogProblemKind.ENTRY_CHANGED),
    ],
)
def test_what_was_changed_in_the_database_shows(
    chat: Chat, change: Callable[[Chat], None], kind: LogProblemKind
) -> None:
    change(chat)
    assert kind in {problem.kind for problem in log_summary(chat).problems}


def test_a_chain_starts_after_entries_that_have_none(chat: Chat, ada: User) -> None:
    """Entries from before the migration have no hash."""
    ChatEvent.objects.filter(chat=chat).update(chain_hash=None)
    Chat.objects.filter(pk=chat.pk).update(chain_hash=None, chain_seq=None)
    factories.message(chat, ada, "after the migration")
    summary = log_summary(chat)
    assert summary.problems == ()
    assert (summary.unchained, summary.chained_from) == (chat.last_seq, chat.last_seq + 1)


@pytest.mark.parametrize("last", [None, 4, 1])
@pytest.mark.parametrize("goes_on", [False, True])
def test_an_end_that_lost_its_hashes_shows(
    chat: Chat, ada: User, last: int | None, *, goes_on: bool
) -> None:
    """Without its hashes the end can be rewritten, and the next entry starts a new chain."""
    place = entry_of(chat, "number 3").seq
    change_a_byte_of_the_log(chat)
    row = Message.objects.get(chat=chat, content__startswith="number 3")
    row.content = row.content.replace("number 3", "number 4")
    row.save()
    ChatEvent.objects.filter(chat=chat, seq__gte=place).update(chain_hash=None)
    Chat.objects.filter(pk=chat.pk).update(chain_hash=None, chain_seq=None)
    if goes_on:
        factories.message(chat, ada, "a new chain")
        chat.refresh_from_db()
    summary = log_summary(chat, last=last)
    count = chat.last_seq - place + 1 - goes_on
    rewritten = [place + n for n in range(count)]
    checked = [seq for seq in rewritten if seq > chat.last_seq - (last or chat.last_seq)]
    assert [(problem.kind, problem.seq) for problem in summary.problems] == [
        (LogProblemKind.ENTRY_CHANGED, seq) for seq in checked
    ]
    assert summary.unchained == 0


def test_a_fork_has_a_chain_of_its_own(chat: Chat, ada: User) -> None:
    newest = Message.objects.filter(chat=chat, deleted_at=None).latest("seq")
    event = fork_chat(chat_id=chat.pk, message_id=newest.pk, forked_by=ada, admit=lambda _: None)
    fork = Chat.objects.get(pk=event.chat_id)
    summary = log_summary(fork)
    assert summary.problems == ()
    assert summary.unchained == 0
    assert summary.entries == fork.last_seq > 1


def test_the_command_names_what_was_changed(chat: Chat, ada: User) -> None:
    other = factories.chat(ada)
    factories.message(other, ada, "hello")
    report = StringIO()
    call_command("audit_log", stdout=report)
    assert "2 chats, 8 entries." in report.getvalue()
    change_a_byte_of_the_log(chat)
    place = entry_of(chat, "number 3").seq
    report = StringIO()
    with pytest.raises(CommandError, match="The logs of 1 chats were changed"):
        call_command("audit_log", stdout=report)
    assert f"{chat.pk}#{place}: entry_changed. The entry was changed" in report.getvalue()
    call_command("audit_log", other.pk, stdout=report, verbosity=2)
    assert f"{other.pk}: intact, 1 entries, " in report.getvalue()
    with pytest.raises(CommandError, match="There is no chat chat_none"):
        call_command("audit_log", "chat_none", stdout=report)
