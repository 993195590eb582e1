"""The check of a chat's rows against the hash chain of its log (docs/log-chain.md).

Synchronous. The chat is locked only for the end of the check, so that concurrent writes are not
reported as problems. What the log has about its messages is kept in temporary files, so that
memory does not grow with the chat.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

from django.db import transaction

from chat_app.log import checkpoints
from chat_app.models import Chat, ChatEvent, LogCheckpoint, Message
from uamp.logs.check import (
    LogCheck,
    LoggedEntry,
    LogProblemKind,
    MessageFacts,
    message_time,
    text_digest,
)
from uamp.logs.spool import Spool

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from uamp.logs.check import CheckTable, CheckTables, LogSummary

PAGE: Final = 100
"""How many rows are in memory at once."""

Item = TypeVar("Item")


def check_log(chat_id: str, *, last: int | None = None) -> LogSummary | None:
    """Check the entries and messages of a chat, or only the `last` ones of a long log.

    Returns None if there is no such chat. Raises SpoolError if there is no space for the files.
    """
    chat = Chat.objects.filter(pk=chat_id).first()
    if chat is None:
        return None
    after = 0 if last is None else max(0, chat.last_seq - last)
    with Spool() as spool:
        return _checked(chat, after, spool.table)


def _checked(chat: Chat, after: int, tables: CheckTables) -> LogSummary | None:
    """Check a chat after a place; return None if it was deleted meanwhile."""
    chat_id = chat.pk
    if not _is_emptied(chat):
        check = LogCheck(
            chat_id,
            after=after,
            previous=_chain_hash_at(chat_id, after),
            is_chained=_is_chained_before(chat_id, after),
            tables=tables,
        )
        _add_entries(check, chat_id, chat.last_seq)
    else:
        check = LogCheck(chat_id, after=chat.last_seq, tables=tables)
    suspects, missing = tables(bool), tables(int)
    for row in _messages(chat_id, after):
        if _problem(check, row):
            suspects[row.pk] = True
    for message_id, seq in _missing(check, chat_id):
        missing[message_id] = seq
    with transaction.atomic():
        now = Chat.objects.select_for_update(no_key=True).filter(pk=chat_id).first()
        if now is None:
            return None
        _add_entries(check, chat_id, now.last_seq)
        _add_head(check, now)
        _add_changed(check, suspects)
    for _message_id, seq in missing.items():  # noqa: PERF102 a table has no values()
        check.add_problem(LogProblemKind.MESSAGE_MISSING, seq)
    return check.finish()


def all_chats() -> Iterator[str]:
    """Yield the ids of all chats."""
    yield from Chat.objects.order_by("pk").values_list("pk", flat=True).iterator()


def logged(row: ChatEvent) -> LoggedEntry:
    """Return a row as the entry that is checked."""
    return LoggedEntry(
        seq=row.seq,
        type=row.type,
        response_id=row.response_id,
        at=row.created_at,
        payload=row.payload,
        digest=_hash(row.erased_digest),
        chain_hash=_hash(row.chain_hash),
    )


def entries_after(
    chat_id: str, after: int, last_seq: int, *, fields: Sequence[str] = ()
) -> Iterator[list[ChatEvent]]:
    """Yield the entries of a log up to a place, in pages, with all fields or only these."""
    while after < last_seq:
        rows = ChatEvent.objects.filter(chat_id=chat_id, seq__gt=after, seq__lte=last_seq)
        if fields:
            rows = rows.only(*fields)
        page = list(rows.order_by("seq")[:PAGE])
        if not page:
            return
        yield page
        after = page[-1].seq


def _add_entries(check: LogCheck, chat_id: str, last_seq: int) -> None:
    """Check entries against the chain and against the signed heads at their places."""
    for page in entries_after(chat_id, check.last_seq, last_seq):
        signed = checkpoints.read_stored(chat_id, after=check.last_seq, until=page[-1].seq)
        for seq in signed.bad:
            check.add_problem(LogProblemKind.CHECKPOINT_CHANGED, seq)
        for row in page:
            check.add_entry(logged(row), signed=signed.heads.get(row.seq))


def _add_head(check: LogCheck, chat: Chat) -> None:
    """Compare the end of the log with the head that its locked chat records, and signed heads."""
    check.add_head(chat.last_seq, _head(chat))
    if LogCheckpoint.objects.filter(chat=chat, seq__gt=chat.last_seq).exists():
        # The end of the log was removed, and the chat's row changed to match.
        check.add_problem(LogProblemKind.ENTRY_MISSING, chat.last_seq + 1)


def _add_changed(check: LogCheck, suspects: CheckTable[bool]) -> None:
    """Compare messages that did not match once more, now that their chat is locked."""
    for page in _pages(suspects.items()):
        for row in Message.objects.filter(pk__in=dict(page)).order_by("seq"):
            kind = _problem(check, row)
            if kind is not None and not _was_erased_meanwhile(check, row):
                check.add_problem(kind, row.seq)


def _is_emptied(chat: Chat) -> bool:
    """Return whether a chat was emptied as a whole with its row kept (`retention.empty_chats`)."""
    return chat.chain_hash is None and not ChatEvent.objects.filter(chat=chat).exists()


def _head(chat: Chat) -> bytes | None:
    return _hash(chat.chain_hash) if chat.chain_seq == chat.last_seq else None


def _hash(stored: bytes | memoryview | None) -> bytes | None:
    """Return a hash as bytes, whatever the database driver returns."""
    return None if stored is None else bytes(stored)


def _chain_hash_at(chat_id: str, seq: int) -> bytes | None:
    entries = ChatEvent.objects.filter(chat_id=chat_id, seq=seq)
    return _hash(entries.values_list("chain_hash", flat=True).first())


def _is_chained_before(chat_id: str, after: int) -> bool:
    """Return whether an entry up to a place is in the chain."""
    entries = ChatEvent.objects.filter(chat_id=chat_id, seq__lte=after)
    return after > 0 and entries.filter(chain_hash__isnull=False).exists()


def _messages(chat_id: str, after: int) -> Iterator[Message]:
    while True:
        rows = Message.objects.filter(chat_id=chat_id, seq__gt=after).order_by("seq")
        page = list(rows[:PAGE])
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1].seq


def _problem(check: LogCheck, row: Message) -> LogProblemKind | None:
    """Return the problem of a message that does not match its latest revision in the log.

    An entry reduced to a digest confirms no text: only messages of erased people have one, and
    those are deleted first.
    """
    if not _is_as_announced(check, row):
        return LogProblemKind.MESSAGE_CHANGED
    if row.deleted_at is not None:
        is_empty = not row.content and not row.content_items
        is_deleted = is_empty and check.vouches_for_deletion(row.pk)
        return None if is_deleted else LogProblemKind.MESSAGE_CHANGED
    try:
        text = text_digest({"content": row.content, "content_items": row.content_items})
    except ValueError:
        return LogProblemKind.MESSAGE_CHANGED
    revision = row.revision or 0
    last = check.last_revision(row.pk)
    is_last = last is None or last == revision
    if not is_last or not check.has_text(row.pk, seq=row.seq, revision=revision, text=text):
        return LogProblemKind.MESSAGE_CHANGED
    if not check.vouches_for(row.pk, seq=row.seq, revision=revision):
        return LogProblemKind.MESSAGE_UNVERIFIED
    return None


def _is_as_announced(check: LogCheck, row: Message) -> bool:
    """Return whether a message has the sender and the place of its entry."""
    entry = check.announced.get(row.pk)
    if entry is None:
        return True
    sender = row.sender_agent_id or row.sender_user_id
    # The person or agent may be gone, but the name stays.
    if entry.is_whole and sender is not None and str(sender) != entry.sender_id:
        return False
    return entry.agrees(
        MessageFacts(
            seq=row.seq,
            role=row.role,
            name=row.name,
            response_id=row.response_id,
            status=row.status,
            created_at=message_time(row.created_at),
            reply_to=row.reply_to or "",
            thread=row.thread or "",
            also_in_chat=row.thread is not None and not row.thread_only,
            is_copy=row.copied_from is not None,
            transport=row.transport,
        )
    )


def _was_erased_meanwhile(check: LogCheck, row: Message) -> bool:
    """Return whether the entry of a deleted message was erased after it was read."""
    entry = check.announced.get(row.pk)
    if entry is None or not entry.is_whole or not check.vouches_for_deletion(row.pk):
        return False
    now = ChatEvent.objects.filter(chat_id=row.chat_id, seq=entry.seq)
    return not row.content and now.filter(erased_digest__isnull=False).exists()


def _missing(check: LogCheck, chat_id: str) -> Iterator[tuple[str, int]]:
    """Yield the messages that the log announced but that have no row, with their places."""
    for page in _pages(check.announced.items()):
        rows = Message.objects.filter(chat_id=chat_id, pk__in=dict(page))
        present = set(rows.values_list("pk", flat=True))
        yield from ((pk, entry.seq) for pk, entry in page if pk not in present)


def _pages(items: Iterable[Item]) -> Iterator[list[Item]]:
    remaining = iter(items)
    while page := list(islice(remaining, PAGE)):
        yield page
