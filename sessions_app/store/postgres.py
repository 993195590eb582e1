"""The writes of a turn on PostgreSQL: one prepared statement per kind, for any batch size.

A single statement validates, locks, numbers and writes, so in autocommit mode it is one round trip
and one transaction. Chats are locked in id order before any response, as in `orm`. Planning the
statement costs more than running it, so it is prepared, but only on its own connection.

The planner does not know the batch size and would rather scan a table than probe its index a
hundred times. LATERAL with a limit, and ANY(ARRAY(...)), force it to use the index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, LiteralString

import msgspec
from django.db import connection

from sessions_app.store import lock_wait, prepared
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

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessions_app.store.records import Finish, Start

# The shared start and end of both statements. A `turn` has `i`, its position in the batch, and
# `size`, its number of events. `placed` are the accepted turns with their first log position.
_PLACED: Final[LiteralString] = """
placed AS MATERIALIZED (
    SELECT turn.*, locked.last_seq + 1 + coalesce(sum(turn.size) OVER (
        PARTITION BY turn.chat_id ORDER BY turn.i
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)::bigint AS first_seq
    FROM accepted turn JOIN locked ON locked.id = turn.chat_id
), entry AS MATERIALIZED (
    SELECT placed.chat_id, placed.first_seq + e.n AS seq, placed.at, e.type, e.response_id,
        e.payload, decode(e.digest, 'hex') AS digest
    FROM json_to_recordset(%(events)s::json) AS e (i int, n int, type text, response_id text,
        payload jsonb, digest text)
    JOIN placed USING (i)
), chained AS (
    SELECT id::text AS chat_id, last_seq AS seq, chain_hash FROM locked
    UNION ALL
    SELECT entry.chat_id, entry.seq,
        sha256(chained.chain_hash || int8send(entry.seq) || entry.digest)
    FROM chained JOIN entry ON entry.chat_id = chained.chat_id AND entry.seq = chained.seq + 1
), head AS (
    UPDATE chat_app_chat chat SET last_seq = chained.seq, chain_seq = chained.seq,
        chain_hash = chained.chain_hash, latest_at = latest.at
    FROM (SELECT DISTINCT ON (chat_id) * FROM placed ORDER BY chat_id, i DESC) latest
        JOIN chained ON chained.chat_id = latest.chat_id
            AND chained.seq = latest.first_seq + latest.size - 1
    WHERE chat.id = latest.chat_id AND chat.id = ANY(ARRAY(SELECT id FROM locked))
), new_message AS (
    INSERT INTO chat_app_message (id, chat_id, seq, role, sender_user_id, sender_agent_id, name,
        content, content_items, response_id, status, transport, reply_to, version_of,
        thread, thread_only, salt, created_at)
    SELECT m.id, placed.chat_id, placed.first_seq + m.n, m.role, m.sender_user_id,
        m.sender_agent_id, m.name, m.content, m.content_items, m.response_id, m.status,
        m.transport, m.reply_to, m.version_of, m.thread, m.thread_only, m.salt,
        m.created_at
    FROM json_to_recordset(%(messages)s::json) AS m (i int, n int, id text, role text,
        sender_user_id bigint, sender_agent_id text, name text, content text,
        content_items jsonb, response_id text, status text, transport text,
        reply_to text, version_of text, thread text, thread_only boolean,
        salt text, created_at timestamptz)
    JOIN placed USING (i)
), new_event AS (
    INSERT INTO chat_app_chatevent (chat_id, seq, type, response_id, payload, created_at,
        chain_hash)
    SELECT chat_id, entry.seq, entry.type, entry.response_id, entry.payload, entry.at,
        chained.chain_hash
    FROM entry JOIN chained USING (chat_id, seq)
)"""

# The locked chats, with the hash that the next entry builds on (`chat_app.log.chain.head_hash`).
_LOCKED: Final[LiteralString] = """
    SELECT id, last_seq, CASE WHEN chain_seq = last_seq THEN chain_hash ELSE sha256(convert_to(
        E'uamp chat log 1\\n' || id || E'\\n' || last_seq || E'\\n', 'UTF8')) END AS chain_hash
    FROM chat_app_chat"""

# Before locking: set this transaction's lock timeout (`lock_wait`).
_PATIENCE: Final[LiteralString] = """
WITH RECURSIVE patience AS MATERIALIZED (
    SELECT set_config('lock_timeout',
        coalesce(%(lock_wait)s::text, current_setting('lock_timeout')), true)
), """

_ACCEPTED_STARTS: Final[LiteralString] = f"""
turn AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%(turns)s::json) AS t (i int, size int, session_id text,
        chat_id text, user_id bigint, event_id text, sha256 text, message_id text,
        response_ids jsonb, process text, lease_until timestamptz, at timestamptz), patience
), judged AS MATERIALIZED (
    SELECT turn.*, known.sha256 AS known_sha256, known.outcome::text AS known_outcome,
        session.id IS NOT NULL AS is_open,
        turn.user_id IS NULL OR member.id IS NOT NULL AS is_member
    FROM turn
    LEFT JOIN LATERAL (
        SELECT sha256, outcome FROM sessions_app_inboundevent
        WHERE session_id = turn.session_id AND event_id = turn.event_id LIMIT 1
    ) known ON true
    LEFT JOIN LATERAL (
        SELECT id FROM sessions_app_session
        WHERE id = turn.session_id AND status IN ({OPEN_SESSIONS}) LIMIT 1
    ) session ON true
    LEFT JOIN LATERAL (
        SELECT id FROM chat_app_participant
        WHERE chat_id = turn.chat_id AND user_id = turn.user_id AND left_at IS NULL LIMIT 1
    ) member ON true
), accepted AS MATERIALIZED (
    SELECT * FROM judged WHERE known_sha256 IS NULL AND is_open AND is_member
), locked AS MATERIALIZED (
    {_LOCKED} WHERE id = ANY(ARRAY(SELECT chat_id FROM accepted))
    ORDER BY id FOR NO KEY UPDATE
), """  # noqa: S608 states of the table

_WRITTEN_STARTS: Final[LiteralString] = f"""
, new_inbound AS (
    INSERT INTO sessions_app_inboundevent (session_id, event_id, sha256, outcome, created_at)
    SELECT session_id, event_id, sha256, jsonb_build_object('message_id', message_id,
        'response_ids', response_ids, 'first_seq', first_seq), at
    FROM placed
), new_response AS (
    INSERT INTO sessions_app_response (id, chat_id, session_id, agent_id, message_id, status,
        request, text, output, process, fence, offered_fence, lease_until, created_at)
    SELECT r.id, placed.chat_id, placed.session_id, r.agent_id, r.message_id, {BEGINS},
        r.request, '', '[]', placed.process, 1, 1, placed.lease_until, placed.at
    FROM json_to_recordset(%(responses)s::json) AS r (i int, id text, agent_id text,
        message_id text, request jsonb)
    JOIN placed USING (i)
)
SELECT judged.is_open, judged.is_member, judged.known_sha256,
    judged.known_outcome, placed.first_seq
FROM judged LEFT JOIN placed USING (i) ORDER BY judged.i"""  # noqa: S608 as above

_ACCEPTED_FINISHES: Final[LiteralString] = f"""
turn AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%(turns)s::json) AS t (i int, size int, chat_id text,
        response_id text, fence int, is_first boolean, status text, text text, output jsonb,
        usage jsonb, error jsonb, error_cause text, inferences jsonb, at timestamptz), patience
), locked AS MATERIALIZED (
    {_LOCKED} WHERE id = ANY(ARRAY(SELECT chat_id FROM turn))
    ORDER BY id FOR NO KEY UPDATE
), live AS MATERIALIZED (
    SELECT response.id, response.fence, response.status FROM sessions_app_response response
    WHERE response.id = ANY(ARRAY(
        SELECT turn.response_id FROM turn JOIN locked ON locked.id = turn.chat_id
    ))
    ORDER BY response.id FOR NO KEY UPDATE
), accepted AS MATERIALIZED (
    SELECT turn.* FROM turn JOIN live ON live.id = turn.response_id AND live.fence = turn.fence
    WHERE turn.is_first AND (live.status, turn.status) IN ({ENDS})
), """  # noqa: S608 as above

_WRITTEN_FINISHES: Final[LiteralString] = """
, ended AS (
    UPDATE sessions_app_response response SET status = placed.status, text = placed.text,
        output = placed.output, usage = placed.usage, error = placed.error,
        error_cause = placed.error_cause, inferences = placed.inferences,
        lease_until = NULL, finished_at = placed.at
    FROM placed WHERE response.id = placed.response_id
        AND response.id = ANY(ARRAY(SELECT response_id FROM placed))
)
SELECT placed.first_seq FROM turn LEFT JOIN placed USING (i) ORDER BY turn.i"""

_START: Final[LiteralString] = _PATIENCE + _ACCEPTED_STARTS + _PLACED + _WRITTEN_STARTS
_FINISH: Final[LiteralString] = _PATIENCE + _ACCEPTED_FINISHES + _PLACED + _WRITTEN_FINISHES


def write_starts(starts: Sequence[Start]) -> list[Verdict]:
    """Write the turns that may start; return a verdict for each (UAMP §5.12)."""
    turns = [
        {
            "i": i,
            "size": len(start.responses) + (start.message_event is not None),
            "session_id": start.session_id,
            "chat_id": start.chat_id,
            "user_id": start.user_id,
            "event_id": start.event_id,
            "sha256": start.sha256,
            "message_id": start.message.id if start.message else None,
            "response_ids": [new.id for new in start.responses],
            "process": start.process,
            "lease_until": start.lease_until,
            "at": start.at,
        }
        for i, start in enumerate(starts)
    ]
    responses = [
        {
            "i": i,
            "id": new.id,
            "agent_id": new.agent_id,
            "message_id": start.answered_id,
            "request": new.request,
        }
        for i, start in enumerate(starts)
        for new in start.responses
    ]
    rows = _run(_START, turns=turns, responses=responses, **_log(starts))
    return [Verdict(*row) for row in rows]


def write_finishes(finishes: Sequence[Finish]) -> list[FirstSeq]:
    """Write the ends that their fences allow; return None for the others."""
    seen: set[str] = set()
    turns = []
    for i, finish in enumerate(finishes):
        turns.append(
            {
                "i": i,
                "size": 1 + (finish.message_event is not None),
                "chat_id": finish.chat_id,
                "response_id": finish.response_id,
                "fence": finish.fence,
                "is_first": finish.response_id not in seen,
                "status": finish.status,
                "text": finish.text,
                "output": finish.output,
                "usage": finish.usage,
                "error": finish.error,
                "error_cause": finish.error_cause,
                "inferences": finish.inferences,
                "at": finish.at,
            }
        )
        seen.add(finish.response_id)
    return [first_seq for (first_seq,) in _run(_FINISH, turns=turns, **_log(finishes))]


def _log(turns: Sequence[Start | Finish]) -> dict[str, list[dict[str, Any]]]:
    messages, events = [], []
    for i, turn in enumerate(turns):
        rows = zip(event_rows(turn), entry_digests(turn), strict=True)
        for n, (new, digest) in enumerate(rows):
            events.append(
                {
                    "i": i,
                    "n": n,
                    "type": new.type,
                    "response_id": new.response_id,
                    "payload": new.payload,
                    "digest": digest.hex(),
                }
            )
            if new.message is not None:
                messages.append({"i": i, "n": n, **message_row(new.message)})
    return {"messages": messages, "events": events}


def _run(statement: LiteralString, **rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Run a prepared statement with its rows as JSON; raises Django's database errors."""
    parameters: dict[str, str | None] = {
        name: msgspec.json.encode(value).decode() for name, value in rows.items()
    }
    parameters["lock_wait"] = lock_wait.limit()
    return prepared.rows(connection, statement, parameters)
