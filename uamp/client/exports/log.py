"""Compares the messages of an export with the chat's log and its hash chain.

In an export, the signed head of the log follows the messages, and the entries follow the head
(docs/log-chain.md).
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec

from uamp.client.errors import ExportCutError
from uamp.logs.chain import hash_of, time_of
from uamp.logs.check import (
    CheckTable,
    CheckTables,
    LogCheck,
    LoggedEntry,
    LogProblemKind,
    LogSummary,
    MessageFacts,
    in_memory,
    message_time,
    text_digest,
)
from uamp.logs.checkpoint import (
    BadCheckpoint,
    LogHead,
    UnknownCheckpointKey,
    open_checkpoint,
    read_checkpoint,
)
from uamp.transparency.notes import Witness
from uamp.transparency.proofs import LoggedHead, check_proof

Line = TypeVar("Line", bound=msgspec.Struct)
_NOTHING: Final = text_digest({})


class _EntryLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line with a log entry."""

    seq: int
    event_type: str
    response_id: str
    at: int
    event: dict[str, Any]
    chain_hash: str | None
    digest: str | None = None


class _MessageLine(msgspec.Struct, frozen=True, kw_only=True):
    """The facts in a message's line that the log covers."""

    id: str = ""
    seq: int = 0
    role: str | None = None
    name: str | None = None
    sender_kind: str | None = None
    sender_id: str | None = None
    response_id: str | None = None
    status: str | None = None
    signature: Any = None
    created_at: datetime | None = None
    reply_to: str | None = None
    thread: str | None = None
    also_in_chat: bool = False
    copied_from: str | None = None
    content: str = ""
    content_items: list[Any] = []
    revision: int = 0
    deleted_at: str | None = None


class _ExportedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message of the file, with its text as a digest."""

    facts: MessageFacts
    sender_kind: str | None
    sender_id: str | None
    response_id: str | None
    signature: bytes
    revision: int
    text: bytes
    is_deleted: bool

    @property
    def seq(self) -> int:
        """The place of the message."""
        return self.facts.seq


class _Versions(msgspec.Struct, frozen=True, kw_only=True):
    """The places of the last versions of an answer: in any entry, and in one the chain covers."""

    current: int
    covered: int = 0


class ExportedLog(msgspec.Struct, frozen=True, kw_only=True):
    """The result of checking the log of an export.

    ``checkpoint`` is its signed head, or None; ``is_signed`` says whether one of the given keys
    signed it, None if no key was given or none of them is the one that the head names. ``tree`` is
    the proof that the head is in the tree of its server, None if the file has none.

    ``unverified`` counts messages of the file with a text or sender that the log does not confirm:
    it has only the digest of the original, or a later state of the message. ``absent`` counts
    messages of the log that come before or after those in the file. ``unsigned`` counts entries
    after the signed head.
    """

    summary: LogSummary
    checkpoint: LogHead | None
    is_signed: bool | None
    tree: LoggedHead | None = None
    unverified: int = 0
    absent: int = 0
    unsigned: int = 0

    @property
    def is_compared(self) -> bool:
        """Whether the log confirms every message in the file, and the file omits none."""
        return not self.unverified and not self.absent

    @property
    def is_proven(self) -> bool:
        """Whether a signed head covers the whole log, and the log covers all messages.

        If the head is in a tree, one of the keys has signed the tree, too.
        """
        is_signed = bool(self.is_signed) and (self.tree is None or bool(self.tree.is_signed))
        return self.is_compared and is_signed and not self.unsigned


class ExportedLogCheck:
    """Checks the messages of an export, then the signed head of its log, then the entries.

    What it compares at the end is kept in ``tables``. The ids of the messages must be different.
    """

    def __init__(
        self,
        chat_id: str,
        keys: Iterable[Mapping[str, Any]] = (),
        witnesses: Iterable[Witness] = (),
        *,
        tables: CheckTables = in_memory,
    ) -> None:
        self._chat_id = chat_id
        self._keys = tuple(keys)
        self._witnesses = tuple(witnesses)
        self._tables = tables
        self._messages = tables(_ExportedMessage)
        self._first: int | None = None
        self._final = 0
        self._entries: LogCheck | None = None
        self._head: LogHead | None = None
        self._is_signed: bool | None = None
        self._tree: LoggedHead | None = None

    def add_message(self, line: Mapping[str, Any]) -> None:
        """Add the line of a message. Raises ExportCutError for a malformed line."""
        message = _parsed(line, _MessageLine)
        content = {"content": message.content, "content_items": message.content_items}
        self._first = message.seq if self._first is None else min(self._first, message.seq)
        self._final = max(self._final, message.seq)
        self._messages[message.id] = _ExportedMessage(
            facts=_facts(message),
            sender_kind=message.sender_kind,
            sender_id=message.sender_id,
            response_id=message.response_id,
            signature=_digest(message.signature),
            revision=message.revision,
            text=text_digest(content),
            is_deleted=message.deleted_at is not None,
        )

    def add_entry(self, line: Mapping[str, Any]) -> None:
        """Add the line of an entry. Raises ExportCutError for a malformed line."""
        entry = _parsed(line, _EntryLine)
        digest, chain_hash = hash_of(entry.digest), hash_of(entry.chain_hash)
        if (digest is None) != (entry.digest is None) or (chain_hash is None) != (
            entry.chain_hash is None
        ):
            raise ExportCutError("An entry of the log has no hash.", code="export_changed")
        try:
            at = time_of(entry.at)
        except OverflowError:
            raise ExportCutError("An entry has no time.", code="export_changed") from None
        if self._entries is None:
            self._entries = LogCheck(self._chat_id, tables=self._tables)
        head = self._head
        self._entries.add_entry(
            LoggedEntry(
                seq=entry.seq,
                type=entry.event_type,
                response_id=entry.response_id,
                at=at,
                payload=entry.event,
                digest=digest,
                chain_hash=chain_hash,
            ),
            signed=head.chain_hash if head is not None and head.seq == entry.seq else None,
        )

    def add_checkpoint(self, note: Any, tree: Any = None) -> None:
        """Add the signed head, and the proof that it is in the tree of its server.

        Raises ExportCutError if one of them is malformed or wrong, or comes too late.
        """
        if self._head is not None or self._entries is not None or not isinstance(note, str):
            raise ExportCutError("The export has more than one signed head.", code="export_changed")
        try:
            head = read_checkpoint(note)
            if self._keys:
                open_checkpoint(note, self._keys)
                self._is_signed = True
        except UnknownCheckpointKey:
            self._is_signed = None
        except BadCheckpoint as error:
            raise ExportCutError(f"The signed head: {error}", code="export_changed") from None
        if head.chat_id != self._chat_id:
            raise ExportCutError("The signed head belongs to another chat.", code="export_changed")
        self._head = head
        if tree is None:
            return
        try:
            self._tree = check_proof(str(tree), head, self._keys, self._witnesses)
        except BadCheckpoint as error:
            raise ExportCutError(f"The tree of log heads: {error}", code="export_changed") from None

    def finish(self) -> ExportedLog | None:
        """Return the result, or None for an export without a log."""
        check = self._entries
        if check is None:
            if self._head is None:
                return None
            check = LogCheck(self._chat_id)
        unverified = 0
        for message_id, message in self._messages.items():
            if not _is_logged(check, message_id, message):
                check.add_problem(LogProblemKind.MESSAGE_CHANGED, message.seq)
            elif not _is_verified(check, message_id, message):
                unverified += 1
        absent = self._add_missing(check)
        head = self._head
        if head is not None and head.seq > check.last_seq:
            check.add_problem(LogProblemKind.ENTRY_MISSING, check.last_seq + 1)
        return ExportedLog(
            summary=check.finish(),
            checkpoint=head,
            is_signed=self._is_signed,
            tree=self._tree,
            unverified=unverified,
            absent=absent,
            unsigned=0 if head is None else max(0, check.last_seq - head.seq),
        )

    def _add_missing(self, check: LogCheck) -> int:
        """Record messages of the log missing from the file; return how many are outside its range.

        An export does not contain earlier versions of answers. Messages after the last one may have
        arrived while the file was written, and a file may start at a later message.
        """
        versions = self._versions(check)
        absent = 0
        for message_id, entry in check.announced.items():
            last = versions.get(entry.first_id) or _Versions(current=entry.seq)
            if message_id in self._messages or entry.seq < last.covered:
                continue
            if (self._first or 0) < entry.seq < self._final and entry.seq == last.current:
                check.add_problem(LogProblemKind.MESSAGE_MISSING, entry.seq)
            else:
                absent += 1
        return absent

    def _versions(self, check: LogCheck) -> CheckTable[_Versions]:
        """Return the last versions of each answer that has more than one, by its first id."""
        versions = self._tables(_Versions)
        for message_id, entry in check.announced.items():
            last = versions.get(entry.first_id)
            if last is None:
                if message_id == entry.first_id:
                    continue
                first = check.announced.get(entry.first_id)
                covered = first.seq if first is not None and first.is_whole else 0
            else:
                covered = last.covered
            if entry.is_whole:
                covered = entry.seq
            versions[entry.first_id] = _Versions(current=entry.seq, covered=covered)
        return versions


def _facts(message: _MessageLine) -> MessageFacts:
    at = message.created_at
    return MessageFacts(
        seq=message.seq,
        role=message.role,
        name=message.name or "",
        response_id=message.response_id or "",
        status=message.status or "completed",
        created_at=None if at is None else message_time(at),
        reply_to=message.reply_to or "",
        thread=message.thread or "",
        also_in_chat=bool(message.thread) and message.also_in_chat,
        is_copy=bool(message.copied_from),
    )


def _is_logged(check: LogCheck, message_id: str, message: _ExportedMessage) -> bool:
    """Return whether the log contradicts nothing in the line of a message."""
    entry = check.announced.get(message_id)
    if entry is not None and not entry.agrees(message.facts):
        return False
    # If the agent is gone, the line may say "user" instead of "agent": that is not verified.
    kinds = (None, "agent", message.sender_kind)
    if entry is not None and entry.is_whole and entry.sender_kind not in kinds:
        return False
    # Earlier exports have no id, and later ones none of a sender who is gone.
    ids = (None, "anonymous", None if entry is None else entry.sender_id)
    if entry is not None and entry.is_whole and message.sender_id not in ids:
        return False
    response_id = message.response_id or ""
    if response_id in check.signatures and message.signature != _digest(
        check.signatures.get(response_id)
    ):
        return False
    if message.is_deleted:
        return check.is_deleted(message_id) and message.text == _NOTHING
    return check.has_text(message_id, seq=message.seq, revision=message.revision, text=message.text)


def _is_verified(check: LogCheck, message_id: str, message: _ExportedMessage) -> bool:
    """Return whether the log confirms a message that it does not contradict."""
    entry = check.announced.get(message_id)
    if message.is_deleted:
        return entry is None or check.vouches_for_deletion(message_id)
    if entry is not None and not entry.is_whole:
        # An erased message has no text.
        return message.text == _NOTHING
    if entry is not None and entry.sender_kind not in (None, message.sender_kind):
        return False
    is_last = check.last_revision(message_id) in {None, message.revision}
    return (
        is_last
        and not check.is_deleted(message_id)
        and check.vouches_for(message_id, seq=message.seq, revision=message.revision)
    )


def _digest(signature: Any) -> bytes:
    """Return the digest of an answer's signature, from a line or an entry."""
    return text_digest({"content": signature})


def _parsed(line: Mapping[str, Any], kind: type[Line]) -> Line:
    try:
        return msgspec.convert(line, type=kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise ExportCutError(f"A line is malformed: {error}", code="export_changed") from None
