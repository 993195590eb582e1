"""The two writes of a turn in SQL: the outcomes and rows of `orm` in fewer statements.

`orm` is the reference, and a test compares every field of every row (docs/adr/0008-turn-store.md).
Rare parts (contents, stored inputs, tool calls) are left to the ORM, in the same transaction. The
SQL bypasses `save()`, signals and Python defaults.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import msgspec
from django.db import connection, transaction

from sessions_app.models import InboundEvent
from sessions_app.store import postgres, sqlite
from sessions_app.store.orm import (
    earlier_finish,
    known_outcome,
    use_inputs,
    use_message,
    use_outputs,
    use_version,
    use_work,
    with_charges,
    with_holds,
)
from sessions_app.store.records import Fenced, Finished, StartCommitted, StartRefused
from uamp import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessions_app.store.records import Finish, FinishOutcome, Start, StartOutcome
    from sessions_app.store.rows import Verdict


def start_turns(starts: Sequence[Start]) -> list[StartOutcome]:
    """Write the start of turns; see `orm.start_turns`."""
    rare = any(
        s.content_ids
        or s.pending_input_ids
        or s.reservations
        or s.continued
        or s.is_in_thread
        or s.has_mentions
        for s in starts
    )
    with _transaction(rare=rare):
        verdicts = _write_starts(starts)
        outcomes = [_start_outcome(s, verdict) for s, verdict in zip(starts, verdicts, strict=True)]
        return with_holds(starts, outcomes)


def finish_turns(finishes: Sequence[Finish]) -> list[FinishOutcome]:
    """Write the end of responses; see `orm.finish_turns`."""
    rare = any(
        f.content_ids
        or f.has_tool_calls
        or f.parent
        or f.charge
        or f.is_version
        or f.is_in_thread
        or f.has_mentions
        for f in finishes
    )
    with _transaction(rare=rare):
        firsts = _write_finishes(finishes)
        written = {f.response_id for f, seq in zip(finishes, firsts, strict=True) if seq}
        outcomes: list[FinishOutcome] = []
        for finish, first_seq in zip(finishes, firsts, strict=True):
            if first_seq is not None:
                use_outputs(finish)
                use_version(finish)
                use_message(finish, first_seq)
                use_work(finish)
                outcomes.append(Finished(first_seq))
            elif finish.response_id in written:
                outcomes.append(Fenced())
            else:
                outcomes.append(earlier_finish(finish))
        return with_charges(finishes, outcomes, [seq is not None for seq in firsts])


def _transaction(*, rare: bool) -> AbstractContextManager[object]:
    """Return a transaction, unless the write is a single statement, which needs none."""
    if rare or connection.vendor != "postgresql":
        return transaction.atomic()
    return nullcontext()


def _write_starts(starts: Sequence[Start]) -> list[Verdict]:
    if connection.vendor == "postgresql":
        return postgres.write_starts(starts)
    return sqlite.write_starts(starts)


def _write_finishes(finishes: Sequence[Finish]) -> list[int | None]:
    if connection.vendor == "postgresql":
        return postgres.write_finishes(finishes)
    return sqlite.write_finishes(finishes)


def _start_outcome(start: Start, verdict: Verdict) -> StartOutcome:
    if verdict.known_sha256 is not None and verdict.known_outcome is not None:
        led_to = msgspec.json.decode(verdict.known_outcome)
        return known_outcome(InboundEvent(sha256=verdict.known_sha256, outcome=led_to), start)
    if not verdict.is_open:
        return StartRefused(ErrorCode.UNKNOWN_SESSION)
    if not verdict.is_member:
        return StartRefused(ErrorCode.CHAT_NOT_FOUND)
    if verdict.first_seq is None:
        raise KeyError(start.chat_id)
    use_inputs(start, verdict.first_seq)
    use_message(start, verdict.first_seq)
    return StartCommitted(verdict.first_seq)
