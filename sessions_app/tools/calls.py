"""Tool calls as rows: opened before anybody hears of them, answered once.

A wait is a row with a deadline: for the session's client (UAMP §5.14), for a person who has to
allow the call, for a worker, or for another agent. Everything here is synchronous.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

import uamp
from chat_app.contents import reading_rights, references
from chat_app.members import membership
from sessions_app.models import Response, Session, ToolCall
from sessions_app.services import take_media
from sessions_app.states import ToolCallTrigger
from sessions_app.transitions import end_call, move, move_row
from uamp import ErrorCode, RemoteProtocolError, ResponseTrigger
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sessions_app.records import CallAnswer, OpenSession


class OpenedCall(NamedTuple):
    """A call that is written: the key of its row, how far it is, and who has to allow it."""

    pk: int
    status: str
    deadline: datetime
    asker: str | None = None


class CallAbove(NamedTuple):
    """A call by which an agent gave work to another one: where those are who wait for it."""

    chat_id: str
    response_id: str
    call_id: str


_FIRST_STATUS = {
    ToolCall.Kind.CLIENT: ToolCall.Status.WAITING,
    ToolCall.Kind.AGENT: ToolCall.Status.WAITING,
    ToolCall.Kind.LONG: ToolCall.Status.QUEUED,
}


def open_call(
    *,
    response_id: str,
    fence: int,
    kind: str,
    call: uamp.ToolCallData,
    text: str,
    output: Sequence[uamp.ContentItem],
    needs_approval: bool = False,
) -> OpenedCall | None:
    """Write a tool call before anybody hears of it, with the output that led to it.

    A call that was opened before is returned as it is now; None when the response is no longer this
    runner's.
    """
    seconds = settings.UAMP_APPROVAL_SECONDS if needs_approval else settings.UAMP_TOOL_WAIT_SECONDS
    with transaction.atomic():
        held = move(
            Response.objects.filter(pk=response_id, fence=fence),
            ResponseTrigger.WAIT,
            text=text,
            output=msgspec.to_builtins(tuple(output)),
        )
        if not held:
            return None
        row, _ = ToolCall.objects.get_or_create(
            response_id=response_id,
            call_id=call.id,
            defaults={
                "kind": kind,
                "name": call.name,
                "arguments": call.arguments,
                "status": (
                    ToolCall.Status.ASKING if needs_approval else _FIRST_STATUS[ToolCall.Kind(kind)]
                ),
                "asked_in": root_chat(response_id) if needs_approval else "",
                "deadline": timezone.now() + timedelta(seconds=seconds),
            },
        )
        asker = _asker_id(row) if row.status == ToolCall.Status.ASKING else None
    return OpenedCall(row.pk, row.status, row.deadline, asker)


def _asker_id(row: ToolCall) -> str | None:
    """Return the account of whoever asked for the work; None for a visitor."""
    session = row.response.session
    return None if session is None or session.user_id is None else str(session.user_id)


def record_tool_result(session: OpenSession, result: ev.ToolResult) -> tuple[str, int]:
    """Take the client's answer to a `tool.call` and return its response and row (UAMP §5.14).

    The same answer again is fine; anything else for a call that does not wait raises
    RemoteProtocolError unknown_call. Its media are a message's: invalid_media, content_not_found.
    """
    with transaction.atomic():
        row = (
            ToolCall.objects.select_for_update()
            .filter(
                response__session_id=session.id,
                call_id=result.call_id,
                kind=ToolCall.Kind.CLIENT,
            )
            .order_by("-id")
            .first()
        )
        if row is not None and row.status == ToolCall.Status.WAITING:
            move_row(row, ToolCallTrigger.FAIL if result.is_error else ToolCallTrigger.FINISH)
            row.result, row.is_error = result.result, result.is_error
            items = take_media(result.content_items or (), session.principal)
            row.content_items = msgspec.to_builtins(items)
            row.finished_at = timezone.now()
            row.save()
        elif row is None or (row.result, row.is_error) != (result.result, result.is_error):
            raise _unknown_call(result.call_id)
    return row.response_id, row.pk


def _unknown_call(call_id: str) -> RemoteProtocolError:
    return RemoteProtocolError(
        ErrorCode.UNKNOWN_CALL,
        "No call of this session waits under this call_id.",
        details={"call_id": call_id},
    )


# --- Approval ---


def decide_call(session: OpenSession, answer: ev.ToolApprove) -> ToolCall | None:
    """Take a person's answer to `tool.approval_required` and return the call's row.

    The one who asked may decide, and an owner of the chat; others are told that no such call waits
    (RemoteProtocolError unknown_call). The same answer again is fine and returns None.
    """
    now = timezone.now()
    with transaction.atomic():
        rows = ToolCall.objects.select_for_update(of=("self",)).filter(
            call_id=answer.call_id, asked_in=session.chat_id, decided_at__isnull=True
        )
        if answer.response_id is not None:
            rows = rows.filter(response_id=answer.response_id)
        row = rows.select_related("response__session").order_by("-id").first()
        if row is None:
            if _was_decided(session, answer):
                return None
            raise _unknown_call(answer.call_id)
        if not _may_decide(session, row) or row.status != ToolCall.Status.ASKING:
            raise _unknown_call(answer.call_id)
        row.decided_by_id, row.decided_at = session.principal.user_id, now
        if answer.approved:
            move_row(row, ToolCallTrigger.ALLOW)
            row.deadline = now + timedelta(seconds=settings.UAMP_TOOL_WAIT_SECONDS)
        else:
            move_row(row, ToolCallTrigger.FAIL)
            row.is_error, row.finished_at = True, now
            row.result = _refusal(session.principal.username, answer.reason)
        row.save()
    return row


def _refusal(username: str, reason: str | None) -> str:
    said = f" They say: {reason[:1000]}" if reason else ""
    return f"The call was not allowed by {username or 'the visitor'}.{said}"


def _may_decide(session: OpenSession, row: ToolCall) -> bool:
    asker = row.response.session
    if asker is not None and asker.principal == session.principal.key:
        return True
    return membership.is_owner(session.chat_id, session.principal.user_id)


def _was_decided(session: OpenSession, answer: ev.ToolApprove) -> bool:
    """Return whether this very answer was taken before."""
    rows = ToolCall.objects.filter(
        call_id=answer.call_id, asked_in=session.chat_id, decided_at__isnull=False
    )
    if answer.response_id is not None:
        rows = rows.filter(response_id=answer.response_id)
    row = rows.order_by("-id").first()
    if row is None or row.decided_by_id != session.principal.user_id:
        return False
    refused = row.status == ToolCall.Status.FAILED and row.attempts == 0
    return answer.approved is not refused


def asking_calls(chat_id: str) -> list[ev.ToolApprovalRequired]:
    """Return what somebody in a chat is asked to allow, the oldest first."""
    rows = ToolCall.objects.filter(
        asked_in=chat_id,
        status=ToolCall.Status.ASKING,
        finished_at__isnull=True,
        response__finished_at__isnull=True,
    )
    return [
        ev.ToolApprovalRequired(
            call_id=row.call_id,
            name=row.name,
            arguments=row.arguments,
            response_id=row.response_id,
            agent=row.response.agent.name,
            user_id=_asker_id(row),
            expires_at=int(row.deadline.timestamp()),
        )
        for row in rows.select_related("response__agent", "response__session").order_by("id")
    ]


def undecided_calls(response_id: str) -> list[ToolCall]:
    """Return the calls of an ended response that somebody was asked to allow, and nobody did."""
    return list(
        ToolCall.objects.filter(
            response_id=response_id, decided_at__isnull=True, status=ToolCall.Status.CANCELLED
        ).exclude(asked_in="")
    )


def nobody_decided(row: ToolCall) -> ev.ToolApprovalDone:
    """Return the event that says that a call is not asked for any more."""
    return ev.ToolApprovalDone(call_id=row.call_id, response_id=row.response_id, approved=False)


# --- Work for other agents ---


def calls_above(response_id: str) -> list[CallAbove]:
    """Return the calls that led to a response, the nearest first."""
    found: list[CallAbove] = []
    while True:
        parent = (
            ToolCall.objects.filter(child__responses=response_id)
            .values_list("response__chat_id", "response_id", "call_id")
            .first()
        )
        if parent is None:
            return found
        found.append(CallAbove(*parent))
        response_id = parent[1]


def of_call(progress: ev.Progress, call: CallAbove, agent: str) -> ev.Progress:
    """Return the progress of an agent's work as progress of the call that waits for it."""
    said = progress.message or progress.stage or ""
    return msgspec.structs.replace(
        progress,
        event_id=None,
        timestamp=None,
        session_id=None,
        target="tool",
        target_id=call.call_id,
        message=said if said.startswith(f"{agent}: ") else f"{agent}: {said}".rstrip(": "),
        response_id=call.response_id,
    )


def root_chat(response_id: str) -> str:
    """Return the chat in which somebody asked for what a response works at."""
    above = calls_above(response_id)
    if above:
        return above[-1].chat_id
    return Response.objects.values_list("chat_id", flat=True).get(pk=response_id)


def answer_call(pk: int, answer: CallAnswer, *, at: datetime) -> None:
    """Write the end of a call that waits for another agent; later answers change nothing.

    What the other agent made may then be read, passed on and shown where it was asked for.
    """
    answered = end_call(
        ToolCall.objects.filter(pk=pk, status=ToolCall.Status.WAITING),
        ToolCall.Status.FAILED if answer.is_error else ToolCall.Status.DONE,
        result=answer.result,
        is_error=answer.is_error,
        content_items=msgspec.to_builtins(answer.content_items),
        finished_at=at,
    )
    if answered and answer.content_items:
        chat_id = ToolCall.objects.values_list("response__chat_id", flat=True).get(pk=pk)
        reading_rights.use(chat_id, references.content_ids(answer.content_items))


def live_children(response_id: str) -> list[str]:
    """Return the responses that other agents still make for a response."""
    return list(
        Response.objects.filter(
            session__parent_call__response_id=response_id, finished_at__isnull=True
        ).values_list("pk", flat=True)
    )


def work_under_way(chat_id: str) -> list[ev.Event]:
    """Return what shows the calls that others than a client run for a chat, and how far they are.

    Each is a `tool_call` delta with whole arguments, and its last progress if it told any.
    """
    rows = ToolCall.objects.filter(
        response__chat_id=chat_id,
        response__finished_at__isnull=True,
        status__in=ToolCall.OPEN,
        finished_at__isnull=True,
    ).exclude(kind=ToolCall.Kind.CLIENT)
    told: list[ev.Event] = []
    for row in rows.order_by("id"):
        call = uamp.ToolCallData(id=row.call_id, name=row.name, arguments=row.arguments)
        shown = ev.Delta(type="tool_call", tool_call=call)
        told.append(ev.ResponseDelta(response_id=row.response_id, delta=shown))
        progress = _last_progress(row)
        if progress is not None:
            told.append(progress)
    return told


def _last_progress(row: ToolCall) -> ev.Progress | None:
    """Return how far a call is; one that waits for another agent is as far as that one's tool."""
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
    said = None if inner is None else _last_progress(inner)
    if inner is None or said is None:
        return None
    return of_call(said, CallAbove("", row.response_id, row.call_id), inner.response.agent.name)


def begun_calls(response_id: str, call_ids: Sequence[str]) -> dict[str, bool]:
    """Return by call whether the agent's tool has begun, and has not failed, of those with a row.

    A long tool has begun when a worker took it. The client runs its tools itself.
    """
    rows = ToolCall.objects.filter(response_id=response_id, call_id__in=call_ids)
    failed = {ToolCall.Status.FAILED, ToolCall.Status.UNKNOWN}
    return {
        row.call_id: row.status not in failed
        and (row.kind == ToolCall.Kind.AGENT or row.attempts > 0)
        for row in rows
    }


# --- The end of waiting ---


def expire_calls() -> list[ToolCall]:
    """End the calls whose deadline has passed and return them, as they were before.

    One that was answered at the last moment is none of them.
    """
    now = timezone.now()
    unheard = {
        ToolCall.Status.ASKING: "Nobody allowed the call in time.",
        ToolCall.Status.WAITING: "The tool did not answer in time.",
        ToolCall.Status.QUEUED: "The tool did not answer in time.",
    }
    # Another agent has its own time, and may have to wait for a person.
    at_work = Session.objects.filter(
        parent_call=OuterRef("pk"), responses__finished_at__isnull=True
    )
    late = list(
        ToolCall.objects.filter(
            status__in=unheard, finished_at__isnull=True, deadline__lt=now
        ).exclude(Q(kind=ToolCall.Kind.AGENT) & Exists(at_work))
    )
    ended = []
    for row in late:
        status = ToolCall.Status(row.status)
        if move(
            ToolCall.objects.filter(pk=row.pk, status=status, deadline=row.deadline),
            ToolCallTrigger.FAIL,
            is_error=True,
            result=unheard[status],
            finished_at=now,
            decided_at=now if status == ToolCall.Status.ASKING else row.decided_at,
        ):
            ended.append(row)
    return ended


def tool_calls_of(response_id: str) -> list[ToolCall]:
    """Return the tool calls of a response in their order."""
    return list(ToolCall.objects.filter(response_id=response_id).order_by("id"))
