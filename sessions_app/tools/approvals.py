"""Approval of tool calls by a person (UAMP `tool.approval_required`). Synchronous.

A question is a row that waits in the chat of the original request (`ToolCall.asked_in`).
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from chat_app.members import membership
from sessions_app.models import ToolCall
from sessions_app.states import ToolCallState, ToolCallTrigger
from sessions_app.tools.delegated_calls import works_for
from sessions_app.transitions import move_row
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sessions_app.records import OpenSession


def decide_call(session: OpenSession, answer: ev.ToolApprove) -> ToolCall | None:
    """Record a person's answer to `tool.approval_required`; return the call's row.

    The asker and owners of the chat may decide; for everyone else the call does not exist
    (RemoteProtocolError unknown_call). Repeating an answer returns None. An answer that names no
    response and fits several calls raises invalid_event.
    """
    now = timezone.now()
    with transaction.atomic():
        rows = ToolCall.objects.select_for_update(no_key=True, of=("self",)).filter(
            call_id=answer.call_id, asked_in=session.chat_id, decided_at__isnull=True
        )
        if answer.response_id is not None:
            rows = rows.filter(response_id=answer.response_id)
        undecided = list(rows.select_related("response__session").order_by("id"))
        if not undecided and _was_decided(session, answer):
            return None
        asking = [
            row
            for row in undecided
            if row.status == ToolCallState.ASKING and _may_decide(session, row)
        ]
        if not asking:
            raise unknown_call(answer.call_id)
        if len(asking) > 1 or (answer.response_id is None and _has_decided(session, answer)):
            raise RemoteProtocolError(
                ErrorCode.INVALID_EVENT,
                "Several answers have a call with this call_id: send response_id as well.",
                details={"param": "response_id"},
            )
        (row,) = asking
        row.decided_by_id, row.decided_at = session.principal.user_id, now
        if answer.approved:
            move_row(row, ToolCallTrigger.ALLOW)
            row.deadline = now + timedelta(seconds=settings.UAMP_TOOL_WAIT_SECONDS)
        else:
            move_row(row, ToolCallTrigger.FAIL)
            row.is_error, row.finished_at = True, now
            row.cause = "not approved"
            row.result = _refusal(session.principal.username, answer.reason)
        row.save()
    return row


def _refusal(username: str, reason: str | None) -> str:
    explanation = f" They say: {reason[:1000]}" if reason else ""
    return f"The call was not allowed by {username or 'the visitor'}.{explanation}"


def _may_decide(session: OpenSession, row: ToolCall) -> bool:
    asker = row.response.session
    if asker is not None and asker.principal == session.principal.key:
        return True
    return membership.is_owner(session.chat_id, session.principal.user_id)


def _has_decided(session: OpenSession, answer: ev.ToolApprove) -> bool:
    """Return whether the caller has decided a call of this id whose response is still running.

    An answer that names no response may be a repeat of that decision.
    """
    return ToolCall.objects.filter(
        call_id=answer.call_id,
        asked_in=session.chat_id,
        decided_at__isnull=False,
        decided_by_id=session.principal.user_id,
        response__finished_at__isnull=True,
    ).exists()


def _was_decided(session: OpenSession, answer: ev.ToolApprove) -> bool:
    """Return whether the same answer has been accepted before."""
    rows = ToolCall.objects.filter(
        call_id=answer.call_id, asked_in=session.chat_id, decided_at__isnull=False
    )
    if answer.response_id is not None:
        rows = rows.filter(response_id=answer.response_id)
    row = rows.order_by("-id").first()
    if row is None or row.decided_by_id != session.principal.user_id:
        return False
    refused = row.status == ToolCallState.FAILED and row.attempts == 0
    return answer.approved is not refused


def decided_calls(call_pks: Iterable[int]) -> list[int]:
    """Return those of the calls that no longer await a decision."""
    rows = ToolCall.objects.filter(pk__in=list(call_pks)).exclude(status=ToolCallState.ASKING)
    return list(rows.values_list("pk", flat=True))


def pending_approvals(chat_id: str) -> list[ev.ToolApprovalRequired]:
    """Return the open questions of a chat, oldest first."""
    rows = ToolCall.objects.filter(
        asked_in=chat_id,
        status=ToolCallState.ASKING,
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
            user_id=asker_id(row),
            expires_at=int(row.deadline.timestamp()),
        )
        for row in rows.select_related("response__agent", "response__session").order_by("id")
    ]


def delegated_questions(chat_id: str, response_id: str) -> list[ev.ToolApprovalRequired]:
    """Return the open questions of a chat about work that a response delegated."""
    return [
        question
        for question in pending_approvals(chat_id)
        if question.response_id != response_id and works_for(question.response_id, response_id)
    ]


def undecided_calls(response_id: str) -> list[ToolCall]:
    """Return an ended response's calls that were never decided."""
    return list(
        ToolCall.objects.filter(
            response_id=response_id, decided_at__isnull=True, status=ToolCallState.CANCELLED
        ).exclude(asked_in="")
    )


def question_withdrawn(row: ToolCall) -> ev.ToolApprovalDone:
    """Return the event that withdraws the question about a call."""
    return ev.ToolApprovalDone(call_id=row.call_id, response_id=row.response_id, approved=False)


def asker_id(row: ToolCall) -> str | None:
    """Return the id of the account behind a call's work, or None for visitors."""
    session = row.response.session
    return None if session is None or session.user_id is None else str(session.user_id)


def unknown_call(call_id: str) -> RemoteProtocolError:
    """Return the error for a result or decision on a call that is not waiting."""
    return RemoteProtocolError(
        ErrorCode.UNKNOWN_CALL,
        "No call of this session is waiting under this call_id.",
        details={"call_id": call_id},
    )
