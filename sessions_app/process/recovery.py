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
from django.conf import settings

import uamp
from agents_app import checkpoints, connections
from agents_app import selectors as agents
from agents_app.checkpoints import UnreadableCheckpointError
from agents_app.inferences import read_inferences
from agents_app.models import AgentKind
from agents_app.remote import models as remote
from agents_app.remote import tasks
from agents_app.runtime.agent_run import RunRequest
from agents_app.runtime.connected.daemons import starts_over
from chat_app.log import history as chat_history
from chat_app.log.shared_state import read_state
from chat_app.members.agents.triggers import shown_to
from chat_app.members.membership import agent_members
from sessions_app import database
from sessions_app.access import rates
from sessions_app.access.principal import Principal
from sessions_app.billing import payers, requests
from sessions_app.billing.usage import added
from sessions_app.models import Response, Session, ToolCall, ToolCallKind
from sessions_app.process.signals import send_decision
from sessions_app.response.checkpoints import Checkpoints
from sessions_app.response.context import AnsweredMessage, RunContext
from sessions_app.response.end.endings import Ending
from sessions_app.response.end.finish import ResponseEnd
from sessions_app.response.forwarding import to_waiting_chats
from sessions_app.response.payment_guard import PaymentGuard
from sessions_app.response.port import RunPort
from sessions_app.response.request import ResponseRequest, at_its_prices, run_request
from sessions_app.selectors import parent_of, session_on_behalf
from sessions_app.states import ToolCallState
from sessions_app.store import leases, responses
from sessions_app.tools import approvals, calls
from uamp import ErrorCode, ResponseState
from uamp import events as ev
from uamp.content_labels import pure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_app.checkpoints import ResponseCheckpoint
    from agents_app.selectors import AgentSpec
    from sessions_app.billing.payers import AnswerPayment
    from sessions_app.process.registry import Process

logger = logging.getLogger(__name__)

TAKEOVERS: Final = 3
"""How often a response is continued from the same checkpoint."""

HANDOVERS: Final = 16
"""How often a connected agent's response may move between processes before it has started."""

_ITEMS = tuple[uamp.ContentItem, ...]
_INTERRUPTED: Final = ev.ErrorDetail(
    code=ErrorCode.INTERRUPTED,
    message="The server stopped while it answered. What it had said is kept; ask again.",
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
    await _take_all(process, rows, was_given=False)


async def take_over_dead(process: Process) -> None:
    """Take over what dead processes left: responses, and the agents of their daemons."""
    dead = await database.run(connections.dead_processes)
    dead = [one for one in dead if one != process.id]
    if not dead:
        return
    logger.warning("taking over from dead processes: %s", ", ".join(dead))
    await database.run(leases.end_leases, dead)
    # Deletes their rows: last, so that another process tries again if this one dies before.
    await database.run(connections.sweep)
    await sweep(process)


async def take_given(process: Process, response_ids: Sequence[str] | None = None) -> None:
    """Continue responses handed to this process, which holds their agents' daemons.

    Without ids, continue all of them, since a signal may have been lost.
    """
    if not process.draining:
        rows = await database.run(leases.claim_given, process.id, response_ids)
        await _take_all(process, rows, was_given=True)


async def _take_all(process: Process, rows: Sequence[Response], *, was_given: bool) -> None:
    for row in rows:
        try:
            await _take_over(process, row, was_given=was_given)
        except Exception:
            # One unreadable response must not stop the others. Its new lease expires, and the next
            # sweep tries it again.
            logger.exception("response %s could not be taken over", row.pk)


async def _take_over(process: Process, row: Response, *, was_given: bool) -> None:
    if row.cancel_requested_at is not None:
        await _end(process, row)
        return
    try:
        context = await database.run(_continuation, row, was_given=was_given)
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


def _continuation(row: Response, *, was_given: bool) -> RunContext | None:
    """Return the context for continuing a response, or None if it has to end.

    `was_given` is whether its process handed it over, rather than died. Raises
    UnreadableCheckpointError and ValidationError for rows that this server cannot read.
    """
    kept = checkpoints.load(row.pk)
    return _continued(row, kept) if _can_continue(row, kept, was_given=was_given) else None


def _can_continue(row: Response, kept: ResponseCheckpoint | None, *, was_given: bool) -> bool:
    """Return whether an answer can be continued: from a wait, a step, or a tool that has run.

    An answer that crashes its process every time is not retried forever.
    """
    if row.session_id is None:
        return False
    spec = agents.get_spec(row.agent_id)
    if spec.kind == AgentKind.CONNECTED:
        # The daemon that had started is gone; another one starts over unless there is output.
        may_start = (was_given or starts_over(spec)) and row.fence - 1 <= HANDOVERS
        return may_start and not (row.output or row.text)
    if row.status == ResponseState.WAITING:
        return True
    if kept is not None:
        return row.fence - kept.fence <= TAKEOVERS
    has_work = bool(calls.tool_calls_of(row.pk)) or tasks.load(row.pk) is not None
    return row.fence - 1 <= TAKEOVERS and has_work


async def _end(process: Process, row: Response) -> None:
    """End a response as its run would have: with the text so far and its cost."""
    request = RunRequest(response_id=row.pk, history=(), resume=_readable_output(row))
    cancelled = row.cancel_requested_at is not None
    if cancelled:
        canceller = await database.run(responses.canceller_of, row.pk)
        ending = Ending("cancelled", canceller=canceller)
    else:
        cause = f"Process {row.process or 'unknown'} stopped renewing its lease."
        ending = Ending("failed", error=_INTERRUPTED, error_cause=cause)
    context = await database.run(_context, row, request)
    # The interrupted step is not continued, so whatever it delivered is charged.
    used = added(context.usage_before, _readable_usage(row.usage_under_way))
    port = RunPort(msgspec.structs.replace(context, usage_before=used), process.capacity)
    guard = None if port.context.spec.pricing.is_free else PaymentGuard(port)
    end = ResponseEnd(port, guard, Checkpoints(port), store=process.store, on_end=process.take_end)
    port.end()
    await end.write(ending)
    if port.context.spec.kind == AgentKind.REMOTE:
        process.spawn(_stop_left(port.context), name="stop a remote answer")


async def _stop_left(context: RunContext) -> None:
    """Stop the answer of a remote agent whose response has ended, and settle what it was paid."""
    handle = await database.run(tasks.load, context.response_id)
    await remote.stop_left(context.spec, context.response_id, handle)
    if handle is not None:
        await database.run(tasks.delete, context.response_id, fence=context.fence)


def _readable_output(row: Response) -> tuple[uamp.ContentItem, ...]:
    """Return the stored output of a response, or only its text if the rest is unreadable."""
    try:
        return msgspec.convert(row.output, _ITEMS)
    except msgspec.ValidationError:
        return (uamp.TextContent(text=row.text),) if row.text else ()


def _readable_usage(kept: object) -> uamp.UsageStats | None:
    try:
        return msgspec.convert(kept, uamp.UsageStats) if kept else None
    except msgspec.ValidationError:
        return None


def _readable_request(row: Response) -> ResponseRequest:
    try:
        return msgspec.convert(row.request, ResponseRequest)
    except msgspec.ValidationError:
        return ResponseRequest()


def _spec_of(row: Response) -> AgentSpec:
    """Return the agent at the prices of a response, or at today's if its row is unreadable."""
    spec = agents.get_spec(row.agent_id)
    try:
        return at_its_prices(spec, msgspec.convert(row.request, ResponseRequest).pricing)
    except msgspec.ValidationError:
        return spec


def _context(
    row: Response, request: RunRequest, *, asked: AnsweredMessage | None = None
) -> RunContext:
    session = (
        Session.objects.select_related("parent_call", "chat", "agent", "user")
        .filter(pk=row.session_id)
        .first()
    )
    spec = _spec_of(row)
    return RunContext(
        parent=None if session is None else parent_of(session),
        user_id=None if session is None else session.user_id,
        counted_as="" if session is None else _counted_as(session),
        credential=_readable_request(row).credential,
        actors=_readable_request(row).actors,
        protocol="" if session is None else session.transport,
        payment=_payment(row, session, spec),
        usage_before=_readable_usage(row.usage),
        inferences_before=tuple(read_inferences(row.inferences)),
        asked=asked,
        replaces=_readable_request(row).replaces,
        thread=_readable_request(row).thread,
        response_id=row.pk,
        chat_id=row.chat_id,
        session_id=row.session_id,
        spec=spec,
        request=request,
        fence=row.fence,
        state=ResponseState(row.status),
        fan_out=True,
    )


def _counted_as(session: Session) -> str:
    """Return the name that limits count the asker under; for visitors, the session's principal.

    Their address is not stored.
    """
    return session.principal if session.user_id is None else rates.person(session.user_id)


def _payment(row: Response, session: Session | None, spec: AgentSpec) -> AnswerPayment | None:
    if spec.pricing.is_free or session is None:
        return None
    user = session.user
    principal = Principal(
        key=session.principal,
        user_id=session.user_id,
        username=user.get_username() if user else "",
        credential=_readable_request(row).credential,
    )
    purchase = payers.purchase_of(
        session_on_behalf(row, session, principal),
        spec,
        unprompted=_readable_request(row).unprompted,
    )
    return payers.who_pays([purchase])[purchase]


def _continued(row: Response, kept: ResponseCheckpoint | None) -> RunContext:
    """Return the context of a continued response: same id, stored output, same tools."""
    resume = _with_results(row)
    handle = tasks.load(row.pk)
    if row.status != ResponseState.WAITING and (kept is not None or handle is not None):
        resume = _beyond(row, kept) or (kept.output if kept is not None else ())
    session = Session.objects.select_related("chat").get(pk=row.session_id)
    config = msgspec.convert(session.config, uamp.SessionConfig)
    overrides = msgspec.convert(row.request, ResponseRequest)
    messages = chat_history.history_until(
        row.chat_id, message_id=row.message_id, limit=settings.UAMP_HISTORY_MESSAGES
    )
    in_thread = (
        ()
        if overrides.thread is None
        else chat_history.history_until(
            row.chat_id,
            message_id=row.message_id,
            limit=settings.UAMP_HISTORY_MESSAGES,
            thread=overrides.thread,
        )
    )
    shared = session.chat.kind == "group"
    member = next((m for m in agent_members(row.chat_id) if m.agent_id == row.agent_id), None)
    history = overrides.context or tuple(
        message.seen_by(row.agent_id, shared=shared)
        for message in shown_to(member, messages, in_thread)
    )
    usage = _readable_usage(row.usage)
    request = run_request(
        row.pk,
        config,
        overrides,
        history,
        resume=resume,
        checkpoint=kept,
        remote_task=handle,
        written=(usage.output_tokens or 0) if usage else 0,
        asker=_counted_as(session),
        shared_state=read_state(row.chat_id),
    )
    asked = AnsweredMessage.among((*in_thread, *reversed(messages)), row.message_id)
    return _context(row, request, asked=asked)


def _beyond(row: Response, kept: ResponseCheckpoint | None) -> tuple[uamp.ContentItem, ...]:
    """Return the stored output up to the last tool, if tools have run since the checkpoint.

    Their process died after the results and before the next checkpoint, and they must not run
    twice.
    """
    output = () if kept is None else kept.output
    known = {i.tool_call.id for i in output if isinstance(i, uamp.ToolCallContent)}
    if known.issuperset(call.call_id for call in calls.tool_calls_of(row.pk)):
        return ()
    items = _with_results(row)
    while not isinstance(items[-1], uamp.ToolCallContent | uamp.ToolResultContent):
        items = items[:-1]
    return items


def _on_the_wire(call: ToolCall) -> str:
    """Return a result in client format (UAMP §8.4.2): a client's own JSON, or text as JSON."""
    if call.kind == ToolCallKind.CLIENT:
        return call.result
    return msgspec.json.encode(pure(call.result)).decode()


def _with_results(row: Response) -> tuple[uamp.ContentItem, ...]:
    """Return the stored output plus calls and results missing from its last flush."""
    items = list(msgspec.convert(row.output, _ITEMS))
    rows = calls.tool_calls_of(row.pk)
    shown = {i.tool_call.id for i in items if isinstance(i, uamp.ToolCallContent)}
    items += [
        uamp.ToolCallContent(
            tool_call=uamp.ToolCallData(id=call.call_id, name=call.name, arguments=call.arguments)
        )
        for call in rows
        if call.call_id not in shown
    ]
    known = {i.tool_result.call_id for i in items if isinstance(i, uamp.ToolResultContent)}
    items += [
        uamp.ToolResultContent(
            tool_result=uamp.ToolResultData(
                call_id=call.call_id,
                result=_on_the_wire(call),
                is_error=call.is_error,
                content_items=msgspec.convert(call.content_items, _ITEMS) or None,
            )
        )
        for call in rows
        if call.call_id not in known and call.status not in ToolCall.OPEN
    ]
    return tuple(items)
