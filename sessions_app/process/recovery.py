"""Recovery of responses whose process has died.

A response that was waiting for a tool is continued under the same id, from its stored output, once
its call has ended. One in the middle of an answer is continued from its last checkpoint, at the end
of a step. In the first step there is none, so it ends as failed with the text so far, unless it is
the answer of a remote agent that is still in progress there, which is followed to its end. A
response with a pending cancellation ends as cancelled, also there. Only one task per process calls
`sweep`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import msgspec

from agents_app import connections
from agents_app.checkpoints import UnreadableCheckpointError
from agents_app.models import AgentKind
from agents_app.remote import models as remote
from agents_app.remote import tasks
from sessions_app import database
from sessions_app.billing import requests
from sessions_app.process import continuations
from sessions_app.process.signals import send_decision
from sessions_app.response.checkpoints import Checkpoints
from sessions_app.response.end.endings import Ending
from sessions_app.response.end.finish import ResponseEnd
from sessions_app.response.forwarding import to_waiting_chats
from sessions_app.response.payment_guard import PaymentGuard
from sessions_app.response.port import RunPort
from sessions_app.states import ToolCallState
from sessions_app.store import leases, responses
from sessions_app.tools import approvals, calls
from uamp import ErrorCode
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessions_app.models import Response
    from sessions_app.process.registry import Process
    from sessions_app.response.context import RunContext

logger = logging.getLogger(__name__)

_INTERRUPTED: Final = ev.ErrorDetail(
    code=ErrorCode.INTERRUPTED,
    message="The server stopped during the answer. The text so far is kept; ask again.",
)


async def sweep(process: Process) -> None:
    """End overdue waits, then take over what other processes left behind."""
    for late in await database.run(calls.expire_calls):
        await process.signals.call_ended(late.response_id, late.pk)
        if late.status == ToolCallState.ASKING:
            await send_decision(late.asked_in, approvals.question_withdrawn(late))
    for request in await database.run(requests.expire):
        await process.signals.payment_decided(request.response_id, request.pk)
    if process.draining:
        return
    rows = await database.run(leases.claim_orphans, process.id, running=process.runs)
    await _take_all(process, rows, was_handed_over=False)


async def take_over_dead(process: Process) -> None:
    """Take over what dead processes left: responses, and the agents of their daemons."""
    dead = await database.run(connections.dead_processes)
    dead = [dead_id for dead_id in dead if dead_id != process.id]
    if not dead:
        return
    logger.warning("taking over from dead processes: %s", ", ".join(dead))
    await database.run(leases.end_leases, dead)
    # Deletes their rows: last, so that another process tries again if this one dies before.
    await database.run(connections.sweep)
    await sweep(process)


async def take_handed_over(process: Process, response_ids: Sequence[str] | None = None) -> None:
    """Continue responses handed to this process, which holds their agents' daemons.

    Without ids, continue all of them, since a signal may have been lost.
    """
    if not process.draining:
        rows = await database.run(leases.claim_handed_over, process.id, response_ids)
        await _take_all(process, rows, was_handed_over=True)


async def _take_all(process: Process, rows: Sequence[Response], *, was_handed_over: bool) -> None:
    for row in rows:
        try:
            await _take_over(process, row, was_handed_over=was_handed_over)
        except Exception:
            # One unreadable response must not stop the others. Its new lease expires, and the next
            # sweep tries it again.
            logger.exception("response %s could not be taken over", row.pk)


async def _take_over(process: Process, row: Response, *, was_handed_over: bool) -> None:
    if row.cancel_requested_at is not None:
        await _end(process, row)
        return
    try:
        context = await database.run(
            continuations.continuation_of, row, was_handed_over=was_handed_over
        )
    except (UnreadableCheckpointError, msgspec.ValidationError):
        # A retry would read the same data.
        logger.exception("response %s cannot continue", row.pk)
        context = None
    if context is None:
        await _end(process, row)
    else:
        # Those who wait for it in another process receive its progress through their chats.
        name = context.spec.name
        listener = None
        if context.parent is not None:
            listener = await database.run(to_waiting_chats, row.pk, name)
        process.runs.launch(context, listener)


async def _end(process: Process, row: Response) -> None:
    """End a response as its run would have: with the text so far and its cost."""
    if row.cancel_requested_at is not None:
        canceller = await database.run(responses.canceller_of, row.pk)
        ending = Ending("cancelled", canceller=canceller)
    else:
        cause = f"Process {row.process or 'unknown'} stopped renewing its lease."
        ending = Ending("failed", error=_INTERRUPTED, error_cause=cause)
    port = RunPort(await database.run(continuations.ending_of, row), process.capacity)
    guard = None if port.context.spec.pricing.is_free else PaymentGuard(port)
    end = ResponseEnd(port, guard, Checkpoints(port), store=process.store, on_end=process.take_end)
    port.end()
    await end.write(ending)
    if port.context.spec.kind == AgentKind.REMOTE:
        process.spawn(_stop_left(port.context), name="stop a remote answer")


async def _stop_left(context: RunContext) -> None:
    """Stop the answer of a remote agent whose response has ended, and settle what it was paid."""
    handle = await database.run(tasks.load, context.response_id)
    await remote.stop_orphaned(context.spec, context.response_id, handle)
    if handle is not None:
        await database.run(tasks.delete, context.response_id, fence=context.fence)
