"""Shared parts of the two SQL bodies: states, verdicts and message rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import msgspec

from sessions_app.models import Session
from sessions_app.store.orm import finish_events, start_events
from sessions_app.store.records import Start
from sessions_app.transitions import BEGUN, response_ends
from uamp.logs.chain import entry_digest, payload_digest

if TYPE_CHECKING:
    from chat_app.log.entries import NewEvent, NewMessage
    from sessions_app.store.records import Finish

# The tables of `uamp.state` as SQL fragments; the state names contain no quotes.
OPEN_SESSIONS: Final = ", ".join(f"'{state}'" for state in Session.OPEN)
"""The states of sessions that may start a turn, as an SQL list."""

BEGINS: Final = f"'{BEGUN}'"
"""The initial state of a response."""

ENDS: Final = ", ".join(f"('{before}', '{end}')" for before, end in response_ends())
"""Every allowed pair of a response's state and end, as an SQL list."""

FirstSeq: TypeAlias = int | None
"""The first log position of an end, or None if it was not written."""


class Verdict(NamedTuple):
    """The result of checking a turn to start; `first_seq` is set if it was written.

    `known_outcome` is the JSON of its event's earlier outcome.
    """

    is_open: bool
    is_member: bool
    known_sha256: str | None
    known_outcome: str | None
    first_seq: FirstSeq


def event_rows(turn: Start | Finish) -> list[NewEvent]:
    """Return the log entries for the start or end of a turn, in order."""
    return start_events(turn) if isinstance(turn, Start) else finish_events(turn)


def entry_digests(turn: Start | Finish) -> list[bytes]:
    """Return the digest of each entry for the log's hash chain, in order (`uamp.logs.chain`)."""
    return [
        entry_digest(new.type, new.response_id, turn.at, payload_digest(new.payload))
        for new in event_rows(turn)
    ]


def message_row(message: NewMessage) -> dict[str, Any]:
    """Return the columns of a message, except its chat and its position."""
    return {
        "id": message.id,
        "role": message.role,
        "sender_user_id": message.sender_user_id,
        "sender_agent_id": message.sender_agent_id,
        "name": message.name,
        "content": message.content,
        "content_items": msgspec.to_builtins(message.content_items),
        "response_id": message.response_id,
        "status": message.status,
        "transport": message.transport,
        "reply_to": message.reply_to,
        "version_of": message.version_of,
        "thread": message.thread,
        "thread_only": message.is_in_thread_only or None,
        "salt": message.salt,
        "created_at": message.at,
    }
