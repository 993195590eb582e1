"""Calls answered by another agent (UAMP §8.5.4): their chain, progress and end.

Synchronous. `work_under_way` also covers work done by workers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
from django.db.models import Q

import uamp
from chat_app.contents import reading_rights, references
from chat_app.conversation.deletion import DelegatedWork, delete_work
from sessions_app.models import Response, Session, ToolCall, ToolCallKind
from sessions_app.states import ToolCallState
from sessions_app.transitions import end_call
from uamp import events as ev

if TYPE_CHECKING:
    from datetime import datetime

    from sessions_app.records import CallAnswer


class CallAbove(NamedTuple):
    """A delegating call: the chat and the response that wait for it."""

    chat_id: str
    response_id: str
    call_id: str


def calls_above(response_id: str) -> list[CallAbove]:
    """Return the calls that led to a response, nearest first."""
    calls: list[CallAbove] = []
    while True:
        parent = (
            ToolCall.objects.filter(child__responses=response_id)
            .values_list("response__chat_id", "response_id", "call_id")
            .first()
        )
        if parent is None:
            return calls
        calls.append(CallAbove(*parent))
        response_id = parent[1]


def work_for_message(message_id: str, response_id: str | None) -> list[DelegatedWork]:
    """Return the work delegated to answer a message, or by the response that it shows."""
    condition = Q(session__parent_call__response__message=message_id)
    if response_id is not None:
        condition |= Q(session__parent_call__response=response_id)
    rows = Response.objects.filter(condition).values_list("chat_id", "message_id", "id")
    return [DelegatedWork(*row) for row in rows]


def count_work(response_id: str) -> int:
    """Count the agents given work for a response, through any number of delegations."""
    count, level = 0, [response_id]
    while level:
        work = Session.objects.filter(parent_call__response__in=level)
        sessions = list(work.values_list("pk", flat=True))
        level = list(Response.objects.filter(session__in=sessions).values_list("pk", flat=True))
        count += len(sessions)
    return count


def withdraw_late(parent_id: str, response_id: str) -> None:
    """Delete a response's delegated work if the question behind it has been deleted.

    Called in the transaction that ends the response, after its answer was written.
    """
    parents = Response.objects.filter(pk=parent_id, message__deleted_at__isnull=False)
    if parents.exists():
        done = Response.objects.values_list("chat_id", "message_id").get(pk=response_id)
        delete_work(done[0], message_id=done[1], response_id=response_id)


def works_for(response_id: str, other_id: str) -> bool:
    """Return whether a response works for another one, through any number of delegations."""
    return any(above.response_id == other_id for above in calls_above(response_id))


def progress_of_call(progress: ev.Progress, call: CallAbove, agent: str) -> ev.Progress:
    """Return the progress of delegated work as progress of the delegating call."""
    text = progress.message or progress.stage or ""
    return msgspec.structs.replace(
        progress,
        event_id=None,
        timestamp=None,
        session_id=None,
        target="tool",
        target_id=call.call_id,
        message=text if text.startswith(f"{agent}: ") else f"{agent}: {text}".rstrip(": "),
        response_id=call.response_id,
    )


def requested_answer(response_id: str) -> str:
    """Return the answer of the original request that a response works for, or itself."""
    above = calls_above(response_id)
    return above[-1].response_id if above else response_id


def root_chat(response_id: str) -> str:
    """Return the chat of the original request that a response works for."""
    above = calls_above(response_id)
    if above:
        return above[-1].chat_id
    return Response.objects.values_list("chat_id", flat=True).get(pk=response_id)


def answer_call(pk: int, answer: CallAnswer, *, at: datetime) -> None:
    """End a call that waits for another agent; later answers have no effect.

    Media created by the other agent may then be read, passed on and shown in the delegating chat.
    """
    answered = end_call(
        ToolCall.objects.filter(pk=pk, status=ToolCallState.WAITING),
        ToolCallState.FAILED if answer.is_error else ToolCallState.DONE,
        result=answer.result,
        is_error=answer.is_error,
        cause=answer.cause,
        content_items=msgspec.to_builtins(answer.content_items),
        finished_at=at,
    )
    if answered and answer.content_items:
        chat_id = ToolCall.objects.values_list("response__chat_id", flat=True).get(pk=pk)
        reading_rights.use(chat_id, references.content_ids(answer.content_items))


def live_children(response_id: str) -> list[str]:
    """Return other agents' running responses that work for a response."""
    return list(
        Response.objects.filter(
            session__parent_call__response_id=response_id, finished_at__isnull=True
        ).values_list("pk", flat=True)
    )


def work_under_way(chat_id: str) -> list[ev.Event]:
    """Return events for a chat's open calls that workers and other agents execute.

    Each call is a `tool_call` delta with full arguments, followed by its last progress, if any.
    """
    rows = ToolCall.objects.filter(
        response__chat_id=chat_id,
        response__finished_at__isnull=True,
        status__in=ToolCall.OPEN,
        finished_at__isnull=True,
    ).exclude(kind=ToolCallKind.CLIENT)
    events: list[ev.Event] = []
    for row in rows.order_by("id"):
        call = uamp.ToolCallData(id=row.call_id, name=row.name, arguments=row.arguments)
        delta = ev.Delta(type="tool_call", tool_call=call)
        events.append(ev.ResponseDelta(response_id=row.response_id, delta=delta))
        progress = _last_progress(row)
        if progress is not None:
            events.append(progress)
    return events


def _last_progress(row: ToolCall) -> ev.Progress | None:
    """Return the last progress of a call or, if it waits for an agent, of that agent's tool."""
    if row.progress is not None:
        return msgspec.convert(row.progress, ev.Progress)
    inner = (
        ToolCall.objects.filter(
            response__session__parent_call=row,
            status__in=ToolCall.OPEN,
            finished_at__isnull=True,
        )
        .select_related("response__agent")
        .last()
    )
    progress = None if inner is None else _last_progress(inner)
    if inner is None or progress is None:
        return None
    above = CallAbove("", row.response_id, row.call_id)
    return progress_of_call(progress, above, inner.response.agent.name)
