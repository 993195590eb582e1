"""Operators' actions on sessions, answers, tool calls and keys, through the clients' services."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django import forms

from agents_app.mcp.tools import find_tool
from audit_app.admin.operations import Operation, OperationRefused, ReasonForm
from audit_app.record import AuditAction
from sessions_app import session_states
from sessions_app.access import keys
from sessions_app.models import ApiKey, Response, Session, ToolCall, ToolCallKind
from sessions_app.states import ToolCallState
from sessions_app.store.responses import request_cancel
from sessions_app.tools.tasks import requeue_call

if TYPE_CHECKING:
    from django.http import HttpRequest

END_REASON: Final = "ended by an operator"


def _end_session(session: Session, wanted: dict[str, Any], request: HttpRequest) -> str:
    del wanted, request
    return "ended" if session_states.close_session(session.pk, reason=END_REASON) else ""


def _session_facts(session: Session) -> str:
    who = session.user or "a visitor"
    return (
        f"The session {session.pk} of {who} by {session.get_transport_display()} is"
        f" {session.status}. Its client is sent that it has ended; its answers go on."
    )


END_SESSION: Final = Operation(
    name="end",
    label="End session",
    right="sessions_app.end_session",
    act=AuditAction.SESSION_ENDED,
    run=_end_session,
    facts=_session_facts,
    offered=lambda session: session.status in Session.OPEN,
    in_list=True,
)


def _cancel_response(response: Response, wanted: dict[str, Any], request: HttpRequest) -> str:
    del wanted
    if response.finished_at is not None or response.cancel_requested_at is not None:
        return ""
    request_cancel(response.pk, request.user.pk)
    return "its process was asked to stop"


def _response_facts(response: Response) -> str:
    return (
        f"The answer {response.pk} of {response.agent.name} is {response.status}. It stops in the"
        " process that runs it, keeps what it wrote, and what it used is charged."
    )


CANCEL_RESPONSE: Final = Operation(
    name="cancel",
    label="Stop answer",
    right="sessions_app.cancel_response",
    act=AuditAction.RESPONSE_CANCELLED,
    run=_cancel_response,
    facts=_response_facts,
    offered=lambda response: response.finished_at is None and response.cancel_requested_at is None,
    in_list=True,
)


def _seen(call: ToolCall) -> str:
    """Return a marker of a call's state that outdates forms; ignores a worker's lease renewals."""
    since = call.lease_until if call.status == ToolCallState.QUEUED else ""
    return f"{call.status} {call.attempts} {since}".strip()


def _requeue(call: ToolCall, wanted: dict[str, Any], request: HttpRequest) -> str:
    del request
    if wanted["seen"] != _seen(call):
        return ""
    if call.response.finished_at is not None:
        raise OperationRefused("Its answer has ended: no one reads its result.")
    return "it is queued again" if requeue_call(call.pk, attempts=call.attempts) else ""


def _call_facts(call: ToolCall) -> str:
    tool = find_tool(call.name)
    begun = f"The call of {call.name} is {call.status} after {call.attempts} attempts."
    if call.status == ToolCallState.RUNNING and tool is not None and not tool.idempotent:
        return (
            f"{begun} Its worker is taken the call. The tool must not run twice, so that the call"
            " ends with an unknown outcome."
        )
    return f"{begun} A worker that has it now loses it, and another one runs it anew."


REQUEUE_TOOL: Final = Operation(
    name="requeue",
    label="Run again",
    right="sessions_app.requeue_tool",
    act=AuditAction.TOOL_REQUEUED,
    run=_requeue,
    facts=_call_facts,
    offered=lambda call: (
        call.kind == ToolCallKind.LONG
        and call.status in {ToolCallState.QUEUED, ToolCallState.RUNNING}
    ),
    seen=_seen,
    in_list=True,
)


def _revoke_key(key: ApiKey, wanted: dict[str, Any], request: HttpRequest) -> str:
    was_good = keys.revoke_key(
        key, by=request.user, reason=wanted["reason"], address=_address(request)
    )
    return "revoked" if was_good else ""


def _rotate_key(key: ApiKey, wanted: dict[str, Any], request: HttpRequest) -> str:
    if wanted["seen"] != str(key.version):
        return ""
    try:
        made = keys.rotate_key(
            key,
            by=request.user,
            keep=timedelta(hours=int(wanted["keep"])),
            reason=wanted["reason"],
            address=_address(request),
        )
    except LookupError as error:
        raise OperationRefused(str(error)) from error
    wanted["secret"] = made.secret
    return "it has a new secret"


def _address(request: HttpRequest) -> str:
    return str(request.META.get("REMOTE_ADDR", ""))


class RotateForm(ReasonForm):
    """How long the previous secret stays valid alongside the new one."""

    keep = forms.ChoiceField(
        label="The secret before is good",
        choices=[("0", "no more"), ("1", "for an hour"), ("24", "for a day")],
    )
    field_order = ("keep", "reason")


REVOKE_KEY: Final = Operation(
    name="revoke",
    label="Revoke",
    right="sessions_app.revoke_key",
    act=None,
    run=_revoke_key,
    facts=lambda key: (
        f"The key {key.prefix}… of {key.user} ({key.name or 'without a name'}). Its connections"
        " end within five seconds, and it is not accepted again."
    ),
    offered=lambda key: key.revoked_at is None,
    in_list=True,
)

ROTATE_KEY: Final = Operation(
    name="rotate",
    label="Rotate",
    right="sessions_app.rotate_key",
    act=None,
    run=_rotate_key,
    facts=lambda key: (
        f"The key {key.prefix}… of {key.user} gets a new secret, which is shown once. Give it to"
        " its owner in a safe way."
    ),
    offered=lambda key: key.revoked_at is None,
    seen=lambda key: str(key.version),
    form=RotateForm,
)
