"""Operators' actions on sessions, answers, tool calls and keys, through the clients' services."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.db import transaction

from agents_app.mcp.tools import find_tool
from audit_app.admin.operations import Operation, OperationRefused, ReasonForm
from audit_app.admin.records import record_request
from audit_app.record import AuditAction
from payments_app import services as ledger
from payments_app.reporting import answer_costs, movements
from sessions_app import session_states
from sessions_app.access import keys
from sessions_app.models import ApiKey, Response, Session, ToolCall, ToolCallKind
from sessions_app.states import ToolCallState
from sessions_app.store.responses import request_cancel
from sessions_app.tools.tasks import CANCELLABLE, cancel_call, requeue_call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest

    from payments_app.ledger.outcomes import TransferOutcome
    from payments_app.money import Money

END_REASON: Final = "ended by an operator"


def _end_session(session: Session, data: dict[str, Any], request: HttpRequest) -> str:
    del data, request
    return "ended" if session_states.close_session(session.pk, reason=END_REASON) else ""


def _session_facts(session: Session) -> str:
    who = session.user or "a visitor"
    return (
        f"The session {session.pk} of {who} over {session.get_transport_display()} is"
        f" {session.status}. The client will be notified of its end. Running answers will continue."
    )


END_SESSION: Final = Operation(
    name="end",
    label="End session",
    right="sessions_app.end_session",
    act=AuditAction.SESSION_ENDED,
    run=_end_session,
    facts=_session_facts,
    is_available=lambda session: session.status in Session.OPEN,
    in_list=True,
)


def _cancel_response(response: Response, data: dict[str, Any], request: HttpRequest) -> str:
    del data
    if response.finished_at is not None or response.cancel_requested_at is not None:
        return ""
    request_cancel(response.pk, request.user.pk)
    return "its process was asked to stop it"


def _response_facts(response: Response) -> str:
    return (
        f"The answer {response.pk} by {response.agent.name} is {response.get_status_display()}."
        " It will be stopped. The text so far will be kept, and its usage so far will be charged."
    )


CANCEL_RESPONSE: Final = Operation(
    name="cancel",
    label="Stop answer",
    right="sessions_app.cancel_response",
    act=AuditAction.RESPONSE_CANCELLED,
    run=_cancel_response,
    facts=_response_facts,
    is_available=lambda response: (
        response.finished_at is None and response.cancel_requested_at is None
    ),
    in_list=True,
)


def _refundable(response: Response) -> Money | None:
    """Return the refundable part of an answer's charge; None if nothing was charged."""
    cost = answer_costs.costs_of([response.pk]).get(response.pk)
    return None if cost is None else cost.charged - cost.refunded


def _refund_answer(response: Response, options: dict[str, Any], request: HttpRequest) -> str:
    refundable = _refundable(response)
    if refundable is None or not refundable or options["seen"] != str(refundable):
        return ""
    with transaction.atomic():
        try:
            done = ledger.refund_answer(
                key=f"answer:{refundable}",
                scope=f"admin:{response.pk}",
                response_id=response.pk,
                by=request.user.pk,
                reason=options["reason"],
            )
        except ledger.LedgerError as error:
            raise OperationRefused(str(error)) from error
        if all(outcome.replayed for outcome in done):
            return ""
        transfers = ", ".join(outcome.transfer_id for outcome in done)
        text = f"{refundable} {refundable.asset} in transfer {transfers}"
        record_request(
            request,
            AuditAction.ANSWER_REFUNDED,
            response,
            reason=options["reason"],
            detail=f"Refund: {text}",
        )
        _record_movements(request, response, done, options["reason"])
    return text


def _record_movements(
    request: HttpRequest, response: Response, refunds: Sequence[TransferOutcome], reason: str
) -> None:
    """Record each refund of an answer with the payment that it returns, as a single one is."""
    paid = {moved.id: moved.reverses for moved in movements.transfers_of([response.pk])}
    for refund in refunds:
        record_request(
            request,
            AuditAction.TRANSFER_REFUNDED,
            ("payments_app.transfer", paid[refund.transfer_id]),
            reason=reason,
            detail=f"Refund: {refund.amount} {refund.amount.asset} in transfer"
            f" {refund.transfer_id}, with the answer {response.pk}",
        )


def _refund_facts(response: Response) -> str:
    refundable = _refundable(response)
    if refundable is None:
        return "Nothing was charged for this answer."
    count = len(answer_costs.costs_of([response.pk])[response.pk].transfer_ids)
    parts = "" if count == 1 else f" in {count} transfers"
    return (
        f"Returns {refundable} {refundable.asset}{parts} to the payers of the answer {response.pk}"
        f" by {response.agent.name}. Its agent and this server return what they earned."
    )


REFUND_ANSWER: Final = Operation(
    name="refund",
    label="Refund",
    right="payments_app.refund_transfer",
    act=None,
    run=_refund_answer,
    facts=_refund_facts,
    is_available=lambda response: bool(_refundable(response)),
    seen=lambda response: str(_refundable(response) or ""),
)


def _seen(call: ToolCall) -> str:
    """Return a marker of a call's state that outdates forms; ignores a worker's lease renewals."""
    since = call.lease_until if call.status == ToolCallState.QUEUED else ""
    return f"{call.status} {call.attempts} {since}".strip()


def _requeue(call: ToolCall, data: dict[str, Any], request: HttpRequest) -> str:
    del request
    if data["seen"] != _seen(call):
        return ""
    if call.response.finished_at is not None:
        raise OperationRefused("Its answer has ended, so nothing would read the result.")
    return "queued again" if requeue_call(call.pk, attempts=call.attempts) else ""


def _call_facts(call: ToolCall) -> str:
    tool = find_tool(call.name)
    times = "1 attempt" if call.attempts == 1 else f"{call.attempts} attempts"
    begun = f"The call of {call.name} is {call.status} after {times}."
    if call.status == ToolCallState.RUNNING and tool is not None and not tool.idempotent:
        return (
            f"{begun} It will be taken from its worker. The tool must not run twice, so the call"
            " will end with an unknown outcome."
        )
    return f"{begun} If a worker is running it, another worker will take it over."


REQUEUE_TOOL: Final = Operation(
    name="requeue",
    label="Run again",
    right="sessions_app.requeue_tool",
    act=AuditAction.TOOL_REQUEUED,
    run=_requeue,
    facts=_call_facts,
    is_available=lambda call: (
        call.kind == ToolCallKind.LONG
        and call.status in {ToolCallState.QUEUED, ToolCallState.RUNNING}
    ),
    seen=_seen,
    in_list=True,
)


def _cancel_call(call: ToolCall, data: dict[str, Any], request: HttpRequest) -> str:
    del request
    if data["seen"] != _seen(call):
        return ""
    return "cancelled" if cancel_call(call.pk, attempts=call.attempts) else ""


def _cancelled_facts(call: ToolCall) -> str:
    begun = f"The call of {call.name} is {call.get_status_display()}."
    stops = "A worker that is running it will stop."
    if call.status == ToolCallState.ASKING:
        stops = "The request for approval will be withdrawn."
    return (
        f"{begun} {stops} The answer will continue with a result which says that the tool was"
        " cancelled."
    )


CANCEL_TOOL: Final = Operation(
    name="cancel",
    label="Cancel call",
    right="sessions_app.requeue_tool",
    act=AuditAction.TOOL_CANCELLED,
    run=_cancel_call,
    facts=_cancelled_facts,
    is_available=lambda call: call.kind == ToolCallKind.LONG and call.status in CANCELLABLE,
    seen=_seen,
    in_list=True,
)


def running_text(count: int) -> str:
    """Describe the number of running answers that an operation ends."""
    if not count:
        return "No answer is running."
    return "1 running answer will end." if count == 1 else f"{count:,} running answers will end."


def _running_of(key: ApiKey) -> int:
    """Count the running answers that were requested with a key."""
    running = Response.objects.filter(finished_at__isnull=True)
    return running.filter(request__credential=key.credential).count()


def _key_facts(key: ApiKey) -> str:
    return (
        f"The key {key.prefix}… of {key.user} ({key.name or 'unnamed'}) will no longer be accepted."
        f" Its connections will end within five seconds. {running_text(_running_of(key))}"
    )


def _rotation_facts(key: ApiKey) -> str:
    count = _running_of(key)
    running = (
        "No answer is running"
        if not count
        else "1 answer that was requested with it is running, and continues"
        if count == 1
        else f"{count:,} answers that were requested with it are running, and continue"
    )
    return (
        f"The key {key.prefix}… of {key.user} will get a new secret, which is shown once. Send it"
        f" to the owner over a secure channel. {running}; revoke the key instead to end answers"
        " that a stranger may have requested."
    )


def _revoke_key(key: ApiKey, data: dict[str, Any], request: HttpRequest) -> str:
    was_good = keys.revoke_key(
        key, by=request.user, reason=data["reason"], address=_address(request)
    )
    return "revoked" if was_good else ""


def _rotate_key(key: ApiKey, data: dict[str, Any], request: HttpRequest) -> str:
    if data["seen"] != str(key.version):
        return ""
    try:
        made = keys.rotate_key(
            key,
            by=request.user,
            keep=timedelta(hours=int(data["keep"])),
            reason=data["reason"],
            address=_address(request),
        )
    except (LookupError, keys.MayNotActAs) as error:
        raise OperationRefused(str(error)) from error
    data["secret"] = made.secret
    return "it has a new secret"


def _address(request: HttpRequest) -> str:
    return str(request.META.get("REMOTE_ADDR", ""))


class RotateForm(ReasonForm):
    """The time for which the previous secret stays valid alongside the new one."""

    keep = forms.ChoiceField(
        label="The old secret stays valid",
        choices=[("0", "not at all"), ("1", "for an hour"), ("24", "for a day")],
    )
    field_order = ("keep", "reason")


REVOKE_KEY: Final = Operation(
    name="revoke",
    label="Revoke",
    right="sessions_app.revoke_key",
    act=None,
    run=_revoke_key,
    facts=_key_facts,
    is_available=lambda key: key.revoked_at is None,
    in_list=True,
)

ROTATE_KEY: Final = Operation(
    name="rotate",
    label="Rotate",
    right="sessions_app.rotate_key",
    act=None,
    run=_rotate_key,
    facts=_rotation_facts,
    is_available=lambda key: key.revoked_at is None,
    seen=lambda key: str(key.version),
    form=RotateForm,
)
