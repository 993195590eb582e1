"""The writes of a turn on SQLite: plain statements, with one `executemany` per table.

The transaction holds the database lock (IMMEDIATE), so it is safe to read the head of a log and
write it back. Values are stored in Django's format.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.db import connection

from chat_app.log.chain import head_hash
from sessions_app.store.rows import (
    BEGINS,
    ENDS,
    OPEN_SESSIONS,
    FirstSeq,
    Verdict,
    entry_digests,
    event_rows,
    message_row,
)
from uamp.logs.chain import chain_hash

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from sessions_app.store.records import Finish, Start

_JUDGE: Final = f"""
SELECT session.id IS NOT NULL, ?3 IS NULL OR member.id IS NOT NULL,
    known.sha256, known.outcome
FROM (SELECT 1)
LEFT JOIN sessions_app_inboundevent known ON known.session_id = ?1 AND known.event_id = ?2
LEFT JOIN sessions_app_session session ON session.id = ?1
    AND session.status IN ({OPEN_SESSIONS})
LEFT JOIN chat_app_participant member
    ON member.chat_id = ?4 AND member.user_id = ?3 AND member.left_at IS NULL"""  # noqa: S608 states of the table
_HEAD: Final = "SELECT last_seq, chain_seq, chain_hash FROM chat_app_chat WHERE id = ?"
_SET_HEAD: Final = """
UPDATE chat_app_chat SET last_seq = ?1, chain_seq = ?1, chain_hash = ?2, latest_at = ?3
WHERE id = ?4"""
_NEW_EVENT: Final = """
INSERT INTO chat_app_chatevent (chat_id, seq, type, response_id, payload, created_at, chain_hash)
VALUES (?, ?, ?, ?, ?, ?, ?)"""
_NEW_MESSAGE: Final = """
INSERT INTO chat_app_message (id, chat_id, seq, role, sender_user_id, sender_agent_id, name,
    content, content_items, response_id, status, transport, reply_to, version_of,
    thread, thread_only, salt, created_at)
VALUES (:id, :chat_id, :seq, :role, :sender_user_id, :sender_agent_id, :name, :content,
    :content_items, :response_id, :status, :transport, :reply_to,
    :version_of, :thread, :thread_only, :salt, :created_at)"""
_NEW_INBOUND: Final = """
INSERT INTO sessions_app_inboundevent (session_id, event_id, sha256, outcome, created_at)
VALUES (?, ?, ?, ?, ?)"""
_NEW_RESPONSE: Final = f"""
INSERT INTO sessions_app_response (id, chat_id, session_id, agent_id, message_id, status, request,
    text, output, process, fence, offered_fence, lease_until, created_at)
VALUES (?, ?, ?, ?, ?, {BEGINS}, ?, '', '[]', ?, 1, 1, ?, ?)"""  # noqa: S608 as above
_FENCE: Final = f"""
SELECT fence FROM sessions_app_response
WHERE id = ? AND (status, ?) IN (VALUES {ENDS})"""  # noqa: S608 as above
_END: Final = """
UPDATE sessions_app_response SET status = ?, text = ?, output = ?, usage = ?, error = ?,
    error_cause = ?, inferences = ?, lease_until = NULL, finished_at = ? WHERE id = ?"""


def write_starts(starts: Sequence[Start]) -> list[Verdict]:
    """Write the turns that may start; return a verdict for each. Requires a transaction."""
    with connection.wrap_database_errors:
        raw = _raw()
        verdicts = [_judge(raw, start) for start in starts]
        accepted = [s for s, v in zip(starts, verdicts, strict=True) if v.first_seq == 0]
        firsts = _append(raw, accepted)
        raw.executemany(
            _NEW_INBOUND,
            [
                (s.session_id, s.event_id, s.sha256, _json(_outcome(s, first)), _time(s.at))
                for s, first in zip(accepted, firsts, strict=True)
            ],
        )
        raw.executemany(_NEW_RESPONSE, [row for s in accepted for row in _responses(s)])
    seqs = iter(firsts)
    return [v._replace(first_seq=next(seqs)) if v.first_seq == 0 else v for v in verdicts]


def write_finishes(finishes: Sequence[Finish]) -> list[FirstSeq]:
    """Write the ends that their fences allow; None for the others. Requires a transaction."""
    with connection.wrap_database_errors:
        raw = _raw()
        seen: set[str] = set()
        allowed = []
        for finish in finishes:
            row = raw.execute(_FENCE, (finish.response_id, finish.status)).fetchone()
            is_first = finish.response_id not in seen
            seen.add(finish.response_id)
            allowed.append(is_first and row is not None and row[0] == finish.fence)
        accepted = [f for f, is_allowed in zip(finishes, allowed, strict=True) if is_allowed]
        raw.executemany(_END, [_end(finish) for finish in accepted])
        firsts = iter(_append(raw, accepted))
    return [next(firsts) if is_allowed else None for is_allowed in allowed]


def _raw() -> sqlite3.Connection:
    """Return the driver's connection, inside Django's transaction."""
    connection.ensure_connection()
    raw: sqlite3.Connection = connection.connection
    return raw


def _judge(raw: sqlite3.Connection, start: Start) -> Verdict:
    """Return the verdict on a turn, with `first_seq` 0 if it is to be written."""
    is_open, member, sha256, outcome = raw.execute(
        _JUDGE, (start.session_id, start.event_id, start.user_id, start.chat_id)
    ).fetchone()
    return Verdict(
        is_open=bool(is_open),
        is_member=bool(member),
        known_sha256=sha256,
        known_outcome=outcome,
        first_seq=0 if is_open and member and sha256 is None else None,
    )


def _append(raw: sqlite3.Connection, turns: Sequence[Start | Finish]) -> list[int]:
    """Append the turns' events to the logs; return the first log position of each turn."""
    heads: dict[str, tuple[int, bytes]] = {}
    latest: dict[str, str] = {}
    events, messages, firsts = [], [], []
    for turn in turns:
        chat_id, at = turn.chat_id, _time(turn.at)
        if chat_id not in heads:
            heads[chat_id] = _head(raw, chat_id)
        seq, chained = heads[chat_id]
        firsts.append(seq + 1)
        latest[chat_id] = at
        for new, entry in zip(event_rows(turn), entry_digests(turn), strict=True):
            seq += 1
            chained = chain_hash(chained, seq, entry)
            payload = _json(new.payload)
            events.append((chat_id, seq, new.type, new.response_id, payload, at, chained))
            if new.message is not None:
                row = message_row(new.message)
                row.update(
                    chat_id=chat_id,
                    seq=seq,
                    content_items=_json(row["content_items"]),
                    created_at=_time(new.message.at),
                )
                messages.append(row)
        heads[chat_id] = seq, chained
    raw.executemany(_NEW_MESSAGE, messages)
    raw.executemany(_NEW_EVENT, events)
    raw.executemany(_SET_HEAD, [(*heads[chat_id], at, chat_id) for chat_id, at in latest.items()])
    return firsts


def _head(raw: sqlite3.Connection, chat_id: str) -> tuple[int, bytes]:
    """Return the last position of a log, and the hash that the next entry builds on."""
    row = raw.execute(_HEAD, (chat_id,)).fetchone()
    if row is None:
        raise KeyError(chat_id)
    last_seq, chain_seq, chained = row
    return last_seq, head_hash(chat_id, last_seq=last_seq, chain_seq=chain_seq, chain_hash=chained)


def _outcome(start: Start, first_seq: int) -> dict[str, Any]:
    return {
        "message_id": start.message.id if start.message else None,
        "response_ids": [new.id for new in start.responses],
        "first_seq": first_seq,
    }


def _responses(start: Start) -> list[tuple[Any, ...]]:
    return [
        (
            new.id,
            start.chat_id,
            start.session_id,
            new.agent_id,
            start.answered_id,
            _json(new.request),
            start.process,
            _time(start.lease_until),
            _time(start.at),
        )
        for new in start.responses
    ]


def _end(finish: Finish) -> tuple[Any, ...]:
    return (
        finish.status,
        finish.text,
        _json(finish.output),
        None if finish.usage is None else _json(finish.usage),
        None if finish.error is None else _json(finish.error),
        finish.error_cause,
        None if finish.inferences is None else _json(finish.inferences),
        _time(finish.at),
        finish.response_id,
    )


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _time(value: datetime) -> str:
    """Return a time as Django's SQLite backend stores it, in UTC, so that it compares as text."""
    return str(value.astimezone(UTC).replace(tzinfo=None))
