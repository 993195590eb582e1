"""Long tools on Celery: the row is the queue, and the message only notifies a worker.

Brokers lose messages and deliver them twice. Both are harmless: the sweep resends the message of an
unclaimed call, and a claimed call cannot be claimed twice.
"""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from celery import shared_task
from django.conf import settings
from django.db import OperationalError, transaction
from django.db.models import Q
from django.utils import timezone

from agents_app.mcp.tools import find_tool
from agents_app.tools.registry import ToolCancelled, ToolError, ToolOutcome
from chat_app.log import fanout
from sessions_app import database
from sessions_app.frames import frame
from sessions_app.models import ToolCall, ToolCallKind
from sessions_app.states import ToolCallState, ToolCallTrigger
from sessions_app.tools.approvals import question_withdrawn
from sessions_app.tools.fair_claims import in_turn
from sessions_app.tools.sandbox import ToolBroke, ToolDied, ToolKilled, ToolTooLarge, run_tool
from sessions_app.tools.worker import CallClaim, Work, claim_call, end_call
from sessions_app.transitions import end_call as end
from sessions_app.transitions import move
from telemetry import log_fields, span_attributes, spans
from uamp.storable_text import storable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from celery import Task
    from django.db.models import QuerySet
    from django.db.models.functions import Now

    from agents_app.tools.registry import ServerTool

logger = logging.getLogger(__name__)

# A message not followed by a claim within this time counts as lost.
LOST_SECONDS: Final = 3
# The pause between two messages for the same row.
NOTIFY_SECONDS: Final = 5
NOTIFIED_AT_ONCE: Final = 100
# A call that has crashed its worker this many times is not retried.
ATTEMPTS: Final = 5
WRITE_RETRY_SECONDS: Final = (0.2, 1.0, 3.0)
BROKE: Final = "The tool failed. Its error is in the server's log."

CANCELLED: Final = "The tool was cancelled."
CANCELLABLE: Final = (ToolCallState.ASKING, ToolCallState.QUEUED, ToolCallState.RUNNING)

End = tuple[ToolCallState, ToolOutcome]


# --- Messages to workers ---


def notify_workers(pk: int) -> None:
    """Send the message of a queued call; `requeue_lost_calls` retries if the broker fails."""
    _notify([pk])


def _notify(pks: Iterable[int]) -> None:
    for pk in pks:
        try:
            run_tool_call.apply_async(kwargs={"pk": pk}, headers=spans.carrier(), retry=False)
        except Exception:
            # The rows are committed, so their messages are sent again later after any broker error.
            # The remaining ones would only wait for the same broker.
            logger.warning("the message of tool call %s was not sent", pk, exc_info=True)
            return


def silent_calls(now: datetime | Now) -> QuerySet[ToolCall]:
    """Return the calls that lost their message or worker."""
    sent: Any = now - timedelta(seconds=LOST_SECONDS)
    is_silent = Q(status=ToolCallState.RUNNING, lease_until__lt=now) | (
        Q(status=ToolCallState.QUEUED, created_at__lt=sent)
        & (Q(lease_until__isnull=True) | Q(lease_until__lt=now))
    )
    return ToolCall.objects.filter(is_silent, kind=ToolCallKind.LONG, finished_at__isnull=True)


def requeue_lost_calls() -> list[int]:
    """Resend the messages of calls that lost their message or worker; return their rows.

    A call whose lease has expired is queued again, which fences its worker off. A queued call with
    a future `lease_until` was sent a message within NOTIFY_SECONDS. Askers take turns.
    """
    now = timezone.now()
    silent = silent_calls(now)
    ids = in_turn(silent).values_list("pk", flat=True)[:NOTIFIED_AT_ONCE]
    # The condition is repeated so that only one of the processes that found the row sends a
    # message.
    requeued = [
        pk
        for pk in list(ids)
        if move(
            silent.filter(pk=pk),
            ToolCallTrigger.REQUEUE,
            lease_until=now + timedelta(seconds=NOTIFY_SECONDS),
        )
    ]
    _notify(requeued)
    return requeued


def requeue_call(pk: int, *, attempts: int) -> bool:
    """Requeue a queued or running call with this many attempts; return whether it was requeued.

    This fences off a worker that has it. A call that has been claimed in the meantime is left
    alone.
    """
    now = timezone.now()
    with transaction.atomic():
        requeued = move(
            ToolCall.objects.filter(pk=pk, kind=ToolCallKind.LONG, attempts=attempts),
            ToolCallTrigger.REQUEUE,
            lease_until=now + timedelta(seconds=NOTIFY_SECONDS),
        )
        if requeued:
            transaction.on_commit(partial(notify_workers, pk))
    return bool(requeued)


def cancel_call(pk: int, *, attempts: int) -> bool:
    """Cancel a call of a worker with this many attempts; return whether it was cancelled.

    Its worker, if it has one, stops at the next renewal of its lease, and a question to a person is
    withdrawn. The answer continues with the result that the tool was cancelled.
    """
    rows = ToolCall.objects.filter(
        pk=pk, kind=ToolCallKind.LONG, attempts=attempts, status__in=CANCELLABLE
    )
    with transaction.atomic():
        call = rows.select_for_update(no_key=True, of=("self",)).first()
        ended = end(
            rows,
            ToolCallState.CANCELLED,
            result=CANCELLED,
            is_error=True,
            lease_until=None,
            finished_at=timezone.now(),
        )
        if ended and call is not None:
            transaction.on_commit(partial(_tell_of_end, call))
    return bool(ended)


def _tell_of_end(call: ToolCall) -> None:
    settled = {"type": "run.settled", "response": call.response_id, "call": call.pk}
    fanout.send_from_thread(fanout.PROCESSES_GROUP, settled)
    if call.status == ToolCallState.ASKING:
        done = frame(question_withdrawn(call))
        signal = fanout.signal_message(
            chat_id=call.asked_in, frame=done, response_id=call.response_id
        )
        fanout.send_from_thread(fanout.chat_group(call.asked_in), signal)


# --- The task ---


@shared_task(bind=True)
def run_tool_call(self: Task[..., None], *, pk: int, **kwargs: Any) -> None:
    """Run a queued call to its end, unless it has ended or another worker holds it."""
    if kwargs:
        logger.info("ignored arguments from a newer caller: %s", ", ".join(kwargs))
    claim = database.scoped(claim_call, pk)
    if claim is None:
        logger.info("tool call %s was not claimed: it ended, runs elsewhere, or waits its turn", pk)
        return
    headers = {name: value for name in spans.HEADERS if (value := self.request.get(name))}
    with (
        log_fields.within(response_id=claim.response_id, tool_call_id=claim.call_id),
        spans.span(
            "tool",
            kind=spans.SpanKind.CONSUMER,
            parent=spans.parent_of(headers),
            attributes={
                span_attributes.TOOL_NAME: claim.name,
                span_attributes.RESPONSE_ID: claim.response_id,
            },
        ),
    ):
        _run_to_end(claim)


def _run_to_end(claim: CallClaim) -> None:
    status, outcome = _run(claim)
    if _write_end(claim, status, outcome):
        fanout.send_from_thread(
            fanout.PROCESSES_GROUP,
            {"type": "run.settled", "response": claim.response_id, "call": claim.pk},
        )
    else:
        logger.info("tool call %s is no longer this worker's; its end is not written", claim.pk)


def _run(claim: CallClaim) -> End:
    tool = database.scoped(find_tool, claim.name)
    if tool is None:
        return _failed(f"This server has no tool named {claim.name!r}.", "no such tool")
    if claim.attempt > (ATTEMPTS if tool.idempotent else 1):
        return _unknown("the tool was interrupted", "interrupted")
    try:
        arguments = msgspec.json.decode(claim.arguments or "{}", type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        return _failed(f"The arguments must be one JSON object: {error}.", "invalid arguments")
    with Work(claim) as work:
        return _run_tool(tool, work, arguments)


def _run_tool(tool: ServerTool, work: Work, arguments: dict[str, Any]) -> End:
    try:
        # If the response was cancelled while the call waited, the tool never starts.
        work.renew()
        work.check()
        outcome = run_tool(tool, work, arguments, must_stop=work.must_stop)
        work.finish()
    except Exception as error:  # noqa: BLE001 a tool may raise anything, and its call must end
        return _end_without(tool, work, error)
    if work.is_lost:
        return _stopped(work)
    return ToolCallState.FAILED if outcome.is_error else ToolCallState.DONE, outcome


def _end_without(tool: ServerTool, work: Work, error: Exception) -> End:
    """Return the end of a call without an outcome; details not for users go to the log."""
    call = f"tool {tool.name} in call {work.call_id}"
    match error:
        case ToolCancelled():
            end = _stopped(work)
        case ToolKilled():
            logger.warning("%s did not stop and was killed", call)
            end = _stopped(work, is_unknown=not tool.idempotent, cause="killed")
        case ToolError():
            end = _failed(str(error), error.cause)
        case ToolTooLarge():
            limit = settings.UAMP_TOOL_MEMORY_MB
            text = f"The tool used too much memory (limit {limit} MB)."
            end = _failed(text, "used too much memory")
        case ToolDied() if not tool.idempotent:
            logger.error("%s ended its process: %s", call, error)
            text = "the tool's process ended before the tool did"
            end = _unknown(text, "its process ended")
        case ToolDied():
            logger.error("%s ended its process: %s", call, error)
            text = f"The tool's process ended before the tool did ({error})."
            end = _failed(text, "its process ended")
        case ToolBroke():
            logger.error("%s failed:\n%s", call, error.log_text)
            end = _failed(BROKE, f"raised {error.error_class}")
        case _:
            logger.error("%s could not be run", call, exc_info=error)
            end = _failed(BROKE, f"raised {type(error).__name__}")
    return end


def _failed(message: str, cause: str) -> End:
    outcome = ToolOutcome(result=storable(message), is_error=True, cause=storable(cause))
    return ToolCallState.FAILED, outcome


def _unknown(why: str, cause: str) -> End:
    return ToolCallState.UNKNOWN, ToolOutcome(
        result=f"Outcome unknown: {why}, and it may or may not have done its work. It was not run "
        "again.",
        is_error=True,
        cause=cause,
    )


def _stopped(work: Work, *, is_unknown: bool = False, cause: str = "") -> End:
    if work.is_late:
        cause = f"timed out, {cause}".removesuffix(", ")
        if is_unknown:
            return _unknown("the tool took too long and was stopped", cause)
        return _failed("The tool took too long and was stopped.", cause)
    return ToolCallState.CANCELLED, ToolOutcome(result=CANCELLED, is_error=True)


def _write_end(claim: CallClaim, status: str, outcome: ToolOutcome) -> bool:
    for pause in WRITE_RETRY_SECONDS:
        try:
            return database.scoped(end_call, claim, status, outcome)
        except OperationalError:
            logger.warning("the end of tool call %s was not written", claim.pk, exc_info=True)
            time.sleep(pause)
    return database.scoped(end_call, claim, status, outcome)
