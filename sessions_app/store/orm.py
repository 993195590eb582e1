"""The two writes of a turn, in batches: a list in, and a list of outcomes in the same order out.

Each function is one transaction. Locks are always taken in the same order, so two batches cannot
deadlock: session rows are only read, then chats are locked by id. An exception rolls back the whole
batch; the store then retries its turns one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction
from msgspec.structs import replace

from chat_app.contents import reading_rights
from chat_app.contents.references import content_ids
from chat_app.conversation.threads import count_reply
from chat_app.conversation.versions import replace_versions
from chat_app.log import entries
from chat_app.log.entries import Append
from chat_app.members import membership, origin_rights
from chat_app.members.mentions import keep_mentions
from sessions_app.billing import continued_answers
from sessions_app.billing.reservations import reserve_all, settle_all
from sessions_app.inputs.rows import consume_inputs
from sessions_app.models import InboundEvent, Response, Session, ToolCall
from sessions_app.states import ToolCallTrigger
from sessions_app.store.lock_wait import apply_limit
from sessions_app.store.records import (
    Fenced,
    Finish,
    Finished,
    StartCommitted,
    StartRefused,
    StartRepeated,
)
from sessions_app.tools.delegated_calls import answer_call, withdraw_late
from sessions_app.transitions import BEGUN, end_response, move
from uamp import ErrorCode, LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessions_app.store.records import FinishOutcome, Start, StartOutcome


@transaction.atomic
def start_turns(starts: Sequence[Start]) -> list[StartOutcome]:
    """Write the start of turns: message, responses, outcome of the client event, and log.

    A repeated event returns its first outcome. A turn is refused if its event id was used with
    another body, its session has ended, or its person has left the chat.
    """
    apply_limit()
    rows = {
        (row.session_id, row.event_id): row
        for row in InboundEvent.objects.filter(
            session_id__in={s.session_id for s in starts}, event_id__in={s.event_id for s in starts}
        )
    }
    open_sessions = set(
        Session.objects.filter(
            pk__in={s.session_id for s in starts}, status__in=Session.OPEN
        ).values_list("pk", flat=True)
    )
    outcomes: list[StartOutcome | None] = []
    accepted: list[Start] = []
    for start in starts:
        row = rows.get((start.session_id, start.event_id))
        outcome = known_outcome(row, start) if row else _refusal(start, open_sessions)
        outcomes.append(outcome)
        if outcome is None:
            accepted.append(start)
    first_seqs = iter(_write_starts(accepted))
    begun = [outcome or StartCommitted(next(first_seqs)) for outcome in outcomes]
    return with_holds(starts, begun)


def with_holds(starts: Sequence[Start], outcomes: list[StartOutcome]) -> list[StartOutcome]:
    """Reserve what the starting turns need; return the outcomes including their payments.

    Reservations from an earlier attempt at the same write are found by their keys.
    """
    begun = [
        start
        for start, outcome in zip(starts, outcomes, strict=True)
        if start.reservations and isinstance(outcome, StartCommitted)
    ]
    if not begun:
        return outcomes
    payments = reserve_all([reservation for start in begun for reservation in start.reservations])
    return [
        replace(
            outcome,
            payments={
                reservation.response_id: payments[reservation.response_id]
                for reservation in start.reservations
            },
        )
        if isinstance(outcome, StartCommitted)
        else outcome
        for start, outcome in zip(starts, outcomes, strict=True)
    ]


def known_outcome(row: InboundEvent, start: Start) -> StartOutcome:
    """Return the outcome for an event that was seen before."""
    response_ids: list[str] = row.outcome["response_ids"]
    if _outcome(start)["response_ids"] == response_ids and (
        row.outcome["message_id"] == (start.message.id if start.message else None)
    ):
        # Our own ids: an earlier attempt at this write, whose reply to COMMIT was lost.
        return StartCommitted(row.outcome["first_seq"])
    if row.sha256 != start.sha256:
        return StartRefused(ErrorCode.EVENT_ID_CONFLICT)
    return StartRepeated(response_ids)


def _outcome(start: Start, first_seq: int = 0) -> dict[str, Any]:
    return {
        "message_id": start.message.id if start.message else None,
        "response_ids": [new.id for new in start.responses],
        "first_seq": first_seq,
    }


def _refusal(start: Start, open_sessions: set[str]) -> StartRefused | None:
    if start.session_id not in open_sessions:
        return StartRefused(ErrorCode.UNKNOWN_SESSION)
    if start.user_id is not None and not membership.is_member(start.chat_id, start.user_id):
        return StartRefused(ErrorCode.CHAT_NOT_FOUND)
    return None


def _write_starts(starts: Sequence[Start]) -> list[int]:
    if not starts:
        return []
    firsts = entries.append_many(
        [Append(chat_id=s.chat_id, events=start_events(s), at=s.at) for s in starts]
    )
    # The unique key rejects an event written by another process; turns are then tried singly.
    InboundEvent.objects.bulk_create(
        [
            InboundEvent(
                session_id=s.session_id,
                event_id=s.event_id,
                sha256=s.sha256,
                outcome=_outcome(s, first),
                created_at=s.at,
            )
            for s, first in zip(starts, firsts, strict=True)
        ]
    )
    Response.objects.bulk_create(
        [
            Response(
                id=new.id,
                chat_id=s.chat_id,
                session_id=s.session_id,
                agent_id=new.agent_id,
                message_id=s.answered_id,
                status=BEGUN,
                request=new.request,
                process=s.process,
                offered_fence=1,
                lease_until=s.lease_until,
                created_at=s.at,
            )
            for s in starts
            for new in s.responses
        ]
    )
    for start, first in zip(starts, firsts, strict=True):
        use_inputs(start, first)
        use_message(start, first)
    return firsts


def use_inputs(start: Start, first_seq: int) -> None:
    """Write the parts that few turns have.

    These are contents in the message, inputs stored as rows, and the claim on the answer that the
    turn continues. Raises AlreadyContinued.
    """
    if start.content_ids:
        shown_ids = content_ids(start.message.content_items) if start.message else ()
        origin_rights.take(
            start.chat_id, start.content_ids, taken_by=start.user_id, shown=shown_ids
        )
    if start.pending_input_ids:
        consume_inputs(start.pending_input_ids, at=start.at, outcome=_outcome(start, first_seq))
    if start.continued is not None and start.responses:
        continued_answers.claim(start.continued, start.responses[0].id)


def start_events(start: Start) -> list[entries.NewEvent]:
    """Return the log entries for the start of a turn, in order."""
    message = [start.message_event] if start.message_event else []
    return [*message, *(new.event for new in start.responses)]


def finish_events(finish: Finish) -> list[entries.NewEvent]:
    """Return the log entries for the end of a response, in order."""
    message = [finish.message_event] if finish.message_event else []
    return [finish.event, *message]


@transaction.atomic
def finish_turns(finishes: Sequence[Finish]) -> list[FinishOutcome]:
    """Write the end of responses: message, terminal event and final state.

    A response must still be running and have the given fence.
    """
    apply_limit()
    # Lock chats first, as everywhere, so that a start and a finish in one chat cannot deadlock.
    entries.lock_chats({f.chat_id for f in finishes})
    rows = {
        row.pk: row
        for row in Response.objects.select_for_update(no_key=True)
        .filter(pk__in={f.response_id for f in finishes}, status__in=Response.LIVE)
        .order_by("pk")
    }
    outcomes: list[FinishOutcome | None] = []
    accepted: list[Finish] = []
    for finish in finishes:
        row = rows.pop(finish.response_id, None)
        if row is None or row.fence != finish.fence or not _ended(row, finish):
            outcomes.append(earlier_finish(finish))
            continue
        outcomes.append(None)
        accepted.append(finish)
    first_seqs = iter(_write_finishes(accepted))
    ended = [outcome or Finished(next(first_seqs)) for outcome in outcomes]
    return with_charges(finishes, ended, [outcome is None for outcome in outcomes])


def with_charges(
    finishes: Sequence[Finish], outcomes: Sequence[FinishOutcome], written: Sequence[bool]
) -> list[FinishOutcome]:
    """Charge the ending responses for their usage; return outcomes with remaining balances.

    `written` marks the outcomes of this write; earlier writes have charged theirs.
    """
    charges = [
        finish.charge
        for finish, new in zip(finishes, written, strict=True)
        if new and finish.charge is not None
    ]
    if not charges:
        return list(outcomes)
    available = settle_all(charges)
    return [
        replace(outcome, available=available.get(finish.response_id))
        if new and isinstance(outcome, Finished)
        else outcome
        for finish, outcome, new in zip(finishes, outcomes, written, strict=True)
    ]


def earlier_finish(finish: Finish) -> FinishOutcome:
    """Return whether the write was committed, with the reply to COMMIT lost, or came too late."""
    seq = entries.seq_of_event(finish.chat_id, finish.response_id, finish.event.payload["event_id"])
    return Fenced() if seq is None else Finished(seq)


def _ended(row: Response, finish: Finish) -> bool:
    """End a locked row; return False, writing nothing, if its state does not allow that end."""
    try:
        end_response(row, finish.status)
    except LocalProtocolError:
        return False
    fields: dict[str, Any] = {
        "text": finish.text,
        "output": finish.output,
        "usage": finish.usage,
        "error": finish.error,
        "error_cause": finish.error_cause,
        "inferences": finish.inferences,
        "lease_until": None,
        "finished_at": finish.at,
    }
    for name, value in fields.items():
        setattr(row, name, value)
    row.save(update_fields=["status", *fields])
    return True


def _write_finishes(finishes: Sequence[Finish]) -> list[int]:
    if not finishes:
        return []
    for finish in finishes:
        use_outputs(finish)
    firsts = entries.append_many(
        [Append(chat_id=f.chat_id, events=finish_events(f), at=f.at) for f in finishes]
    )
    for finish, first in zip(finishes, firsts, strict=True):
        use_version(finish)
        use_message(finish, first)
        use_work(finish)
    return firsts


def use_message(turn: Start | Finish, first_seq: int) -> None:
    """Count a written message in its thread, and store its mentions."""
    if turn.message is None or not (turn.is_in_thread or turn.has_mentions):
        return
    # A response's end precedes its message in the log.
    seq = first_seq + isinstance(turn, Finish)
    count_reply(turn.chat_id, turn.message, seq)
    keep_mentions(turn.chat_id, turn.message, seq)


def use_version(finish: Finish) -> None:
    """Make a regenerated answer, once written, replace the former version."""
    if finish.message and finish.message.version_of:
        replace_versions(finish.chat_id, finish.message.version_of, finish.message.id)


def use_work(finish: Finish) -> None:
    """Delete the result of delegated work whose requesting message has been deleted."""
    if finish.parent is not None:
        withdraw_late(finish.parent.response_id, finish.response_id)


def use_outputs(finish: Finish) -> None:
    """Write the parts that few ends have: abandoned calls, contents, and the delegating call."""
    if finish.has_tool_calls:
        move(
            ToolCall.objects.filter(response_id=finish.response_id),
            ToolCallTrigger.CANCEL,
            lease_until=None,
            finished_at=finish.at,
        )
    if finish.content_ids:
        shown_ids = content_ids(finish.message.content_items) if finish.message else ()
        reading_rights.use(finish.chat_id, finish.content_ids, shown=shown_ids)
    if finish.parent is not None and finish.answer is not None:
        answer_call(finish.parent.pk, finish.answer, at=finish.at)
