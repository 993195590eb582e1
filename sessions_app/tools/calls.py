"""Tool calls as rows: written before they are sent, ended once. Synchronous.

A wait is a row with a deadline: for the session's client (UAMP §5.14), for a person's approval, for
a worker, or for another agent.
"""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone

import uamp
from chat_app.contents import storage
from chat_app.contents.references import content_ids
from payments_app.selectors import with_money
from sessions_app.inputs.media import store_output
from sessions_app.models import Response, Session, ToolCall, ToolCallKind
from sessions_app.states import REPORTED, ToolCallState, ToolCallTrigger
from sessions_app.tools.approvals import asker_id, unknown_call
from sessions_app.tools.delegated_calls import root_chat
from sessions_app.transitions import move, move_row
from uamp import ResponseTrigger
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from django.db.models import QuerySet
    from django.db.models.functions import Now

    from sessions_app.records import OpenSession


class OpenedCall(NamedTuple):
    """A written call: its row, and the asker's account if it needs approval."""

    pk: int
    call_id: str
    status: str
    deadline: datetime
    asker: str | None = None


_FIRST_STATUS = {
    ToolCallKind.CLIENT: ToolCallState.WAITING,
    ToolCallKind.AGENT: ToolCallState.WAITING,
    ToolCallKind.LONG: ToolCallState.QUEUED,
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
    """Write a tool call before it is sent, with the output that led to it.

    A client identifies a call by its session and id only. A call for the client therefore gets
    another id if another response of the session has used its own.

    If the call is already open, return it in its current state. Returns None if another process
    holds the response.
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
        is_clients = kind == ToolCallKind.CLIENT
        call_id = _id_for_client(response_id, call.id) if is_clients else call.id
        if call_id != call.id:
            renamed = msgspec.to_builtins(_with_id(output, call.id, call_id))
            Response.objects.filter(pk=response_id).update(output=renamed)
        row, _ = ToolCall.objects.get_or_create(
            response_id=response_id,
            call_id=call_id,
            defaults={
                "kind": kind,
                "name": call.name,
                "arguments": call.arguments,
                "status": (
                    ToolCallState.ASKING if needs_approval else _FIRST_STATUS[ToolCallKind(kind)]
                ),
                "asked_in": root_chat(response_id) if needs_approval else "",
                "deadline": timezone.now() + timedelta(seconds=seconds),
            },
        )
        asker = asker_id(row) if row.status == ToolCallState.ASKING else None
    return OpenedCall(row.pk, row.call_id, row.status, row.deadline, asker)


def _id_for_client(response_id: str, call_id: str) -> str:
    """Return the id under which a client receives a call, the same if the call is opened again."""
    if ToolCall.objects.filter(response_id=response_id, call_id=call_id).exists():
        return call_id
    session = Session.objects.filter(responses=response_id)
    # The agents of a chat may call tools of one session at once, in any process.
    pk = session.select_for_update(no_key=True, of=("self",)).values_list("pk", flat=True).first()
    same_id = ToolCall.objects.filter(
        response__session=pk, call_id=call_id, kind=ToolCallKind.CLIENT
    )
    if pk is None or not same_id.exclude(response_id=response_id).exists():
        return call_id
    return f"call_{uuid.uuid5(uuid.NAMESPACE_OID, f'{response_id} {call_id}').hex}"


def _with_id(
    output: Sequence[uamp.ContentItem], call_id: str, new_id: str
) -> tuple[uamp.ContentItem, ...]:
    return tuple(
        msgspec.structs.replace(item, tool_call=msgspec.structs.replace(item.tool_call, id=new_id))
        if isinstance(item, uamp.ToolCallContent) and item.tool_call.id == call_id
        else item
        for item in output
    )


def record_tool_result(session: OpenSession, result: ev.ToolResult) -> tuple[str, int]:
    """Record a client's answer to a `tool.call`; return the response and the row (UAMP §5.14).

    Repeating an answer has no effect; any other answer to a call that is not waiting raises
    RemoteProtocolError unknown_call. Media are handled as in messages: invalid_media,
    content_not_found.
    """
    began = timezone.now()
    rows = ToolCall.objects.filter(
        response__session_id=session.id, call_id=result.call_id, kind=ToolCallKind.CLIENT
    ).order_by("-id")
    row = rows.first()
    items: Sequence[uamp.ContentItem] = ()
    if result.content_items and row is not None and row.status == ToolCallState.WAITING:
        # Before the transaction, because it may take a minute.
        items = store_output(result.content_items, session.principal, chat_id=session.chat_id)
    try:
        row = _recorded(rows, result, items)
    except BaseException:
        # If the reply to COMMIT was lost, the row shows the files.
        _discard_unused(rows.first(), items, since=began)
        raise
    # The call may have ended meanwhile.
    _discard_unused(row, items, since=began)
    if row is None or (row.result, row.is_error) != (result.result, result.is_error):
        raise unknown_call(result.call_id)
    return row.response_id, row.pk


def _discard_unused(
    row: ToolCall | None, items: Sequence[uamp.ContentItem], *, since: datetime
) -> None:
    """Delete files that were stored for a call's result and that its row does not show."""
    recorded = [] if row is None else msgspec.convert(row.content_items, list[uamp.ContentItem])
    if unused := set(content_ids(items)) - set(content_ids(recorded)):
        storage.discard(unused, since=since)


@transaction.atomic
def _recorded(
    rows: QuerySet[ToolCall], result: ev.ToolResult, items: Sequence[uamp.ContentItem]
) -> ToolCall | None:
    """Record a result, unless the call does not wait for it; return the call."""
    row = rows.select_for_update(no_key=True).first()
    if row is not None and row.status == ToolCallState.WAITING:
        move_row(row, ToolCallTrigger.FAIL if result.is_error else ToolCallTrigger.FINISH)
        row.result, row.is_error = result.result, result.is_error
        row.cause = REPORTED if result.is_error else ""
        row.content_items = msgspec.to_builtins(items)
        row.finished_at = timezone.now()
        row.save()
    return row


def started_calls(response_id: str, call_ids: Sequence[str]) -> dict[str, bool]:
    """Return, for each call with a row, whether its tool has started and not failed.

    A long tool has started when a worker took it, another agent when it was paid or has output or
    usage. Clients run their tools themselves.
    """
    rows = list(ToolCall.objects.filter(response_id=response_id, call_id__in=call_ids))
    failed = {ToolCallState.FAILED, ToolCallState.UNKNOWN}
    at_work = _agents_at_work([row.pk for row in rows if row.kind == ToolCallKind.AGENT])
    return {
        row.call_id: row.status not in failed and (row.pk in at_work or row.attempts > 0)
        for row in rows
    }


def _agents_at_work(call_pks: Sequence[int]) -> set[int]:
    """Return those of the calls for which the other agent has begun."""
    if not call_pks:
        return set()
    rows = list(
        Response.objects.filter(session__parent_call__in=call_pks)
        .only("text", "output", "usage", "usage_under_way")
        .annotate(call=F("session__parent_call_id"))
    )
    paid = with_money([row.pk for row in rows])
    return {
        row.call
        for row in rows
        if row.pk in paid or row.text or row.output or row.usage or row.usage_under_way
    }


_UNANSWERED: Final = {
    ToolCallState.ASKING: "The call was not allowed in time.",
    ToolCallState.WAITING: "The tool did not answer in time.",
    ToolCallState.QUEUED: "The tool did not answer in time.",
}


def late(now: datetime | Now) -> QuerySet[ToolCall]:
    """Return the open calls whose deadline has passed."""
    # Another agent has its own time limit, and may have to wait for a person.
    at_work = Session.objects.filter(
        parent_call=OuterRef("pk"), responses__finished_at__isnull=True
    )
    rows = ToolCall.objects.filter(
        status__in=_UNANSWERED, finished_at__isnull=True, deadline__lt=now
    )
    return rows.exclude(Q(kind=ToolCallKind.AGENT) & Exists(at_work))


def expire_calls() -> list[ToolCall]:
    """End the calls whose deadline has passed; return them as they were before.

    Calls answered at the last moment are not affected.
    """
    now = timezone.now()
    ended = []
    for row in list(late(now)):
        status = ToolCallState(row.status)
        if move(
            ToolCall.objects.filter(pk=row.pk, status=status, deadline=row.deadline),
            ToolCallTrigger.FAIL,
            is_error=True,
            result=_UNANSWERED[status],
            cause="not approved in time" if status == ToolCallState.ASKING else "timed out",
            finished_at=now,
            decided_at=now if status == ToolCallState.ASKING else row.decided_at,
        ):
            ended.append(row)
    return ended


def tool_calls_of(response_id: str) -> list[ToolCall]:
    """Return the tool calls of a response, in order."""
    return list(ToolCall.objects.filter(response_id=response_id).order_by("id"))


def ended_calls(call_pks: Iterable[int]) -> list[ToolCall]:
    """Return those of the calls that have ended."""
    return list(ToolCall.objects.filter(pk__in=list(call_pks)).exclude(status__in=ToolCall.OPEN))


def waiting_calls(session_id: str) -> list[ToolCall]:
    """Return the tool calls that wait for this session's client."""
    return list(
        ToolCall.objects.filter(
            response__session_id=session_id,
            response__finished_at__isnull=True,
            kind=ToolCallKind.CLIENT,
            status=ToolCallState.WAITING,
            finished_at__isnull=True,
        ).order_by("id")
    )
