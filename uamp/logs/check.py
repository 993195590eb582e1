"""Checks a chat's log against its hash chain: entries and messages (docs/log-chain.md).

The server checks its rows with it, and `uamp verify` the lines of an export.
"""

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Protocol, TypeVar

import msgspec

from uamp.logs.chain import canonical, chain_hash, chain_start, entry_digest, payload_digest

Row = TypeVar("Row")

PROBLEMS_MAX: Final = 100
"""The maximum number of problems listed; `problem_count` counts all of them."""


class LogProblemKind(StrEnum):
    """The kind of a fault in an entry, a message or a signed head."""

    ENTRY_CHANGED = "entry_changed"
    ENTRY_MISSING = "entry_missing"
    MESSAGE_CHANGED = "message_changed"
    MESSAGE_MISSING = "message_missing"
    MESSAGE_UNVERIFIED = "message_unverified"
    HEAD_CHANGED = "head_changed"
    CHECKPOINT_CHANGED = "checkpoint_changed"
    ANSWER_CHANGED = "answer_changed"


SENTENCES: Final = {
    LogProblemKind.ENTRY_CHANGED: "The entry was changed, or inserted later.",
    LogProblemKind.ENTRY_MISSING: "An entry is missing here.",
    LogProblemKind.MESSAGE_CHANGED: "The message differs from the one in the log.",
    LogProblemKind.MESSAGE_MISSING: "A message that the log has here was removed.",
    LogProblemKind.MESSAGE_UNVERIFIED: "The log cannot confirm the text of this message.",
    LogProblemKind.HEAD_CHANGED: "The chat records a hash other than that of its last entry.",
    LogProblemKind.CHECKPOINT_CHANGED: "The entry differs from the one that the server signed.",
    LogProblemKind.ANSWER_CHANGED: "The stored answer or its cost differs from the log.",
}
"""Explanations of the problems, for people."""


class LogProblem(msgspec.Struct, frozen=True, kw_only=True):
    """One problem, at the place of an entry; for missing entries, at the first of them."""

    kind: LogProblemKind
    seq: int


class LoggedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry to check.

    ``digest`` is that of the payload as it was written, if ``payload`` differs: something was
    erased, or is withheld from the reader. ``chain_hash`` is None for an entry outside the chain.
    """

    seq: int
    type: str
    response_id: str
    at: datetime
    payload: Mapping[str, Any]
    digest: bytes | None = None
    chain_hash: bytes | None = None


class MessageFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a message that neither an edit nor a deletion changes; texts may be empty.

    ``created_at`` is in milliseconds since 1970. ``is_copy`` says whether it was copied into a
    fork: a copy names another original once the chat of the first one is deleted. ``transport`` is
    None if it is not known.
    """

    seq: int
    role: object
    name: object
    response_id: object
    status: object
    created_at: object
    reply_to: object
    thread: object
    also_in_chat: bool
    is_copy: bool
    transport: object = None


def _facts(message: Mapping[str, Any], *, seq: int) -> MessageFacts:
    """Return the facts of a message in its entry, which leaves out empty values."""
    thread = message.get("thread")
    return MessageFacts(
        seq=seq,
        role=message.get("role"),
        name=message.get("name") or "",
        response_id=message.get("response_id") or "",
        status=message.get("status") or "completed",
        created_at=message.get("created_at"),
        reply_to=message.get("reply_to") or "",
        thread=thread or "",
        also_in_chat=bool(thread and message.get("also_in_chat")),
        is_copy=bool(message.get("copied_from")),
        transport=message.get("transport") or "",
    )


class Announced(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a message in its log entry.

    ``first_id`` is the id of the message's first version. ``is_whole`` says whether the chain
    covers these facts: an entry that has only the digest of its payload can claim anything.
    """

    facts: MessageFacts
    sender_kind: object
    sender_id: object
    first_id: str
    is_whole: bool

    @property
    def seq(self) -> int:
        """The place of the entry."""
        return self.facts.seq

    def agrees(self, facts: MessageFacts) -> bool:
        """Return whether a message has the facts of its entry, or the chain does not cover them."""
        if facts.transport is None:
            facts = msgspec.structs.replace(facts, transport=self.facts.transport)
        return not self.is_whole or self.facts == facts


class LogSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a check.

    ``entries`` is the number read; ``unchained`` of these are outside the chain (older than it),
    and ``erased`` are covered by the digest of their former payload. ``chained_from`` is the first
    place of the chain, ``chain_hash`` the hash of the last entry, or None without a chain.
    """

    entries: int
    unchained: int
    erased: int
    chained_from: int | None
    last_seq: int
    chain_hash: str | None
    problem_count: int
    problems: tuple[LogProblem, ...]

    @property
    def is_intact(self) -> bool:
        """Whether no problem was found."""
        return not self.problem_count


class CheckTable(Protocol[Row]):
    """The methods of a dictionary that a check needs."""

    def get(self, key: str, /) -> Row | None:
        """Return the row of a key, or None."""

    def __contains__(self, key: object, /) -> bool: ...

    def __setitem__(self, key: str, row: Row, /) -> None: ...

    def __len__(self) -> int: ...

    def items(self) -> Iterable[tuple[str, Row]]:
        """Return keys and rows in the order in which the keys were added."""


class CheckTables(Protocol):
    """A function that makes tables."""

    def __call__(self, kind: type[Row], /) -> CheckTable[Row]:
        """Return an empty table for rows of a type."""


def in_memory(kind: type[Row], /) -> CheckTable[Row]:
    """Return a dictionary."""
    del kind
    return {}


class LogCheck:
    """Checks the entries of one log in order. For use by one task or thread.

    ``after`` and ``previous`` are the place and chain hash of the entry before the first one, for
    checking only the end of a log; ``is_chained`` says whether one of the entries before is in the
    chain. What the log has about its messages is kept in ``tables``.
    """

    def __init__(
        self,
        chat_id: str,
        *,
        after: int = 0,
        previous: bytes | None = None,
        is_chained: bool = False,
        tables: CheckTables = in_memory,
    ) -> None:
        self._chat_id = chat_id
        self._is_chained = is_chained or previous is not None
        self._seq = after
        self._previous = previous
        self._entries = self._unchained = self._erased = 0
        self._chained_from: int | None = None
        # The texts of revisions (`_text_key`); empty for one that was erased or is withheld.
        self._texts = tables(bytes)
        # The last revision of each edited message.
        self._edits = tables(int)
        self._announced = tables(Announced)
        # The deleted messages, and whether the entry has more than a digest.
        self._deleted = tables(bool)
        # The signatures of answers by response id, as far as the chain covers them.
        self._signatures = tables(object)
        self._problems: list[LogProblem] = []
        self._problem_count = 0

    def add_entry(self, entry: LoggedEntry, *, signed: bytes | None = None) -> None:
        """Check the next entry against the one before it.

        ``signed`` is the chain hash that a checkpoint names at its place, if there is one.
        """
        is_next = entry.seq == self._seq + 1
        if not is_next:
            self._add(LogProblemKind.ENTRY_MISSING, self._seq + 1)
        self._entries += 1
        self._erased += entry.digest is not None
        if entry.chain_hash is None:
            if self._is_chained:
                # Only entries older than the chain have no hash.
                self._add(LogProblemKind.ENTRY_CHANGED, entry.seq)
            else:
                self._unchained += 1
        else:
            self._is_chained = True
            if self._chained_from is None:
                self._chained_from = entry.seq
            if is_next and not self._is_as_hashed(entry):
                self._add(LogProblemKind.ENTRY_CHANGED, entry.seq)
        if signed is not None and signed != entry.chain_hash:
            self._add(LogProblemKind.CHECKPOINT_CHANGED, entry.seq)
        # Continue from the entry's own values, so that a wrong one does not fail later entries.
        self._seq, self._previous = entry.seq, entry.chain_hash
        # An entry that has no canonical form does not have the hash that it was written with.
        with suppress(ValueError):
            self._take_text(entry)

    def has_text(self, message_id: str, *, seq: int, revision: int, text: bytes) -> bool:
        """Return whether the log has this text (`text_digest`) as that revision of a message.

        True if that cannot be known: the text was erased or withheld, or is older than the chain.
        """
        if self._chained_from is None:
            return True
        if message_id not in self._announced and 0 < seq < self._chained_from:
            return True
        return self._texts.get(_text_key(message_id, revision)) in {b"", text}

    def vouches_for(self, message_id: str, *, seq: int, revision: int) -> bool:
        """Return whether the chain covers the text that `has_text` compares, not just a digest.

        Also True for a text older than the chain: `unchained` counts these entries.
        """
        if self._chained_from is None:
            return True
        if message_id not in self._announced and 0 < seq < self._chained_from:
            return True
        return bool(self._texts.get(_text_key(message_id, revision)))

    def vouches_for_deletion(self, message_id: str) -> bool:
        """Return whether the chain covers which message a deletion refers to."""
        return bool(self._deleted.get(message_id))

    def last_revision(self, message_id: str) -> int | None:
        """Return the last revision of a message in the log, or None if the message is not there."""
        first = 0 if _text_key(message_id, 0) in self._texts else None
        edit = self._edits.get(message_id)
        return max((number for number in (first, edit) if number is not None), default=None)

    def is_deleted(self, message_id: str) -> bool:
        """Return whether the log contains the deletion of a message."""
        return message_id in self._deleted

    @property
    def announced(self) -> CheckTable[Announced]:
        """The messages announced in the chain, with the facts in their entries."""
        return self._announced

    @property
    def signatures(self) -> CheckTable[object]:
        """The signatures of answers from the ends of responses, or None if unsigned.

        Keyed by response id; signatures that the chain does not cover are left out.
        """
        return self._signatures

    def add_head(self, seq: int, chain: bytes | None) -> None:
        """Compare the end of the log with the head that its chat records."""
        if seq != self._seq:
            self._add(LogProblemKind.ENTRY_MISSING, min(seq, self._seq) + 1)
        elif chain is not None and chain != self._previous:
            self._add(LogProblemKind.HEAD_CHANGED, seq)

    def add_problem(self, kind: LogProblemKind, seq: int) -> None:
        """Record a problem that the caller found, such as a bad signature."""
        self._add(kind, seq)

    @property
    def last_seq(self) -> int:
        """The place of the last entry added."""
        return self._seq

    @property
    def chain_hash(self) -> bytes | None:
        """The chain hash of the last entry added."""
        return self._previous

    def finish(self) -> LogSummary:
        """Return the result of the check."""
        return LogSummary(
            entries=self._entries,
            unchained=self._unchained,
            erased=self._erased,
            chained_from=self._chained_from,
            last_seq=self._seq,
            chain_hash=self._previous.hex() if self._previous else None,
            problem_count=self._problem_count,
            problems=tuple(self._problems),
        )

    def _is_as_hashed(self, entry: LoggedEntry) -> bool:
        """Return whether an entry has the chain hash that follows from it."""
        previous = self._previous or chain_start(self._chat_id, entry.seq - 1)
        try:
            digest = entry.digest or payload_digest(entry.payload)
        except ValueError:
            return False
        covered = entry_digest(entry.type, entry.response_id, entry.at, digest)
        return chain_hash(previous, entry.seq, covered) == entry.chain_hash

    def _take_text(self, entry: LoggedEntry) -> None:
        """Record the text of a message that an entry announces or changes."""
        payload, message_id, revision = entry.payload, None, 0
        if entry.type == "message.created" and isinstance(payload.get("message"), Mapping):
            payload = payload["message"]
            message_id = payload.get("id")
            if isinstance(message_id, str) and entry.chain_hash is not None:
                self._announced[message_id] = Announced(
                    facts=_facts(payload, seq=entry.seq),
                    sender_kind=payload.get("sender_kind"),
                    sender_id=payload.get("sender_id"),
                    first_id=str(payload.get("version_of") or message_id),
                    is_whole=entry.digest is None,
                )
        elif entry.type == "message.deleted":
            deleted_id = str(payload.get("message_id"))
            self._deleted[deleted_id] = bool(self._deleted.get(deleted_id)) or not entry.digest
            return
        elif entry.type in {"response.done", "response.cancelled", "response.error"}:
            if entry.chain_hash is not None and entry.digest is None:
                self._signatures[entry.response_id] = payload.get("signature")
            return
        elif entry.type == "message.edited":
            message_id, revision = payload.get("message_id"), payload.get("revision", 0)
        if isinstance(message_id, str) and isinstance(revision, int):
            revision = int(revision)  # `true` is an integer, too
            text = b"" if entry.digest else text_digest(payload)
            self._texts[_text_key(message_id, revision)] = text
            if revision:
                self._edits[message_id] = max(revision, self._edits.get(message_id) or revision)

    def _add(self, kind: LogProblemKind, seq: int) -> None:
        self._problem_count += 1
        if len(self._problems) < PROBLEMS_MAX:
            self._problems.append(LogProblem(kind=kind, seq=seq))


def _text_key(message_id: str, revision: int) -> str:
    return f"{revision} {message_id}"


def message_time(at: datetime) -> int:
    """Return the time of a message as its entry has it."""
    return int(at.timestamp() * 1000)


def text_digest(message: Mapping[str, Any]) -> bytes:
    """Return the SHA-256 of a message's content: its text and its items. Raises ValueError."""
    body = [message.get("content") or "", message.get("content_items") or []]
    return hashlib.sha256(canonical(body)).digest()
