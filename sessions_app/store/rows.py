"""The base of both SQL bodies of a turn's writes: their answers, and a message as a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import msgspec

from sessions_app.models import Session
from sessions_app.store.orm import finish_events, start_events
from sessions_app.store.records import Start
from sessions_app.transitions import BEGUN, response_ends
from uamp.log_chain import entry_digest, payload_digest

if TYPE_CHECKING:
    from chat_app.log.entries import NewEvent, NewMessage
    from sessions_app.store.records import Finish

# The tables of `uamp.state` as parts of SQL; the values are names, without quotes in them.
OPEN_SESSIONS: Final = ", ".join(f"'{state}'" for state in Session.OPEN)
"""The states of sessions that may begin a turn, as a list."""

BEGINS: Final = f"'{BEGUN}'"
"""The state in which a response begins."""

ENDS: Final = ", ".join(f"('{before}', '{end}')" for before, end in response_ends())
"""Every state of a response with each end that it may have, as a list of pairs."""

FirstSeq: TypeAlias = int | None
"""The first place of an end in the log, or None where it was not written."""


class Verdict(NamedTuple):
    """The state of a turn that wants to begin; `first_seq` where it was written.

    `known_outcome` is the JSON of what its event led to before.
    """

    is_open: bool
    is_member: bool
    known_sha256: str | None
    known_outcome: str | None
    first_seq: FirstSeq


def event_rows(turn: Start | Finish) -> list[NewEvent]:
    """Return the log entries of a turn's beginning or end, in order."""
    return start_events(turn) if isinstance(turn, Start) else finish_events(turn)


def entry_digests(turn: Start | Finish) -> list[bytes]:
    """Return what the chain of the log covers of each entry, in order (`uamp.log_chain`)."""
    return [
        entry_digest(new.type, new.response_id, turn.at, payload_digest(new.payload))
        for new in event_rows(turn)
    ]


def message_row(message: NewMessage) -> dict[str, Any]:
    """Return the columns of a message, without its chat and its place."""
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
        "created_at": message.at,
    }
