"""The contexts in which a process continues or ends responses that another one had.

Synchronous.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from django.conf import settings

import uamp
from agents_app import checkpoints
from agents_app import selectors as agents
from agents_app.inferences import read_inferences
from agents_app.models import AgentKind
from agents_app.remote import tasks
from agents_app.runtime.connected.daemons import starts_over
from chat_app.conversation.versions import question_as_it_is
from chat_app.log import history as chat_history
from chat_app.log.shared_state import read_state
from chat_app.members.agents.triggers import visible_messages
from chat_app.members.membership import agent_members
from sessions_app.access import rates
from sessions_app.access.principal import Principal
from sessions_app.billing import payers
from sessions_app.billing.usage import added
from sessions_app.models import Response, Session, ToolCall, ToolCallKind
from sessions_app.response.context import RunContext
from sessions_app.response.question import question_hash
from sessions_app.response.request import (
    ResponseRequest,
    history_of,
    run_request,
    with_agreed_prices,
)
from sessions_app.selectors import parent_of, session_on_behalf
from sessions_app.tools import calls
from uamp import ResponseState
from uamp.content_labels import pure

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from agents_app.checkpoints import ResponseCheckpoint
    from agents_app.remote.tasks import TaskHandle
    from agents_app.runtime.agent_run import RunRequest
    from agents_app.selectors import AgentSpec
    from sessions_app.billing.payers import AnswerPayment

TAKEOVERS: Final = 3
"""How often a response is continued from the same checkpoint."""

HANDOVERS: Final = 16
"""How often a connected agent's response may move between processes before it has started."""

FIRST_HANDOVER_FENCE: Final = 2
"""The fence of a response that the first process to have it handed over before it had begun."""

_ITEMS = tuple[uamp.ContentItem, ...]


def continuation_of(row: Response, *, was_handed_over: bool) -> RunContext | None:
    """Return the context for continuing a response, or None if it has to end.

    `was_handed_over` is whether its process handed it over, rather than died. Raises
    UnreadableCheckpointError and ValidationError for rows that this server cannot read.
    """
    is_unstarted = was_handed_over and row.fence == FIRST_HANDOVER_FENCE
    checkpoint = None if is_unstarted else checkpoints.load(row.pk)
    if not _can_continue(row, checkpoint, was_handed_over=was_handed_over):
        return None
    context = _continued(row, checkpoint, is_unstarted=is_unstarted)
    # The process that had it has died, or let the offer lapse.
    return context if was_handed_over else msgspec.structs.replace(context, avoids=row.process)


def _can_continue(
    row: Response, checkpoint: ResponseCheckpoint | None, *, was_handed_over: bool
) -> bool:
    """Return whether an answer can be continued: from a wait, a step, or a tool that has run.

    An answer that crashes its process every time is not retried forever.
    """
    if row.session_id is None:
        return False
    spec = agents.get_spec(row.agent_id)
    if spec.kind == AgentKind.CONNECTED:
        # The daemon that had started is gone; another one starts over unless there is output. None
        # has started if the row says so; rows that processes of an earlier release write do not.
        is_ungiven = was_handed_over or row.offered_fence == row.fence
        may_start = is_ungiven or starts_over(spec)
        return may_start and row.fence - 1 <= HANDOVERS and not (row.output or row.text)
    if row.status == ResponseState.WAITING:
        return True
    if checkpoint is not None:
        return row.fence - checkpoint.fence <= TAKEOVERS
    has_work = bool(calls.tool_calls_of(row.pk)) or _is_followed(tasks.load(row.pk))
    return row.fence - 1 <= TAKEOVERS and has_work


def _is_followed(handle: TaskHandle | None) -> bool:
    """Return whether a remote agent's answer is in progress where it can be followed."""
    return handle is not None and handle.can_be_followed


def ending_of(row: Response) -> RunContext:
    """Return the context for ending a response with the text so far and its cost."""
    session = _joined_sessions().filter(pk=row.session_id).first()
    # With the client's tools: what their calls deliver is charged, and they have no price.
    request = run_request(
        row.pk,
        _readable_config(session),
        _readable_request(row),
        history=(),
        resume=_readable_output(row),
    )
    # The interrupted step is not continued, so whatever it delivered is charged.
    used = added(_readable_usage(row.usage), _readable_usage(row.usage_under_way))
    return _context(row, session, request, usage=used)


def _readable_output(row: Response) -> tuple[uamp.ContentItem, ...]:
    """Return the stored output of a response, or only its text if the rest is unreadable."""
    try:
        return msgspec.convert(row.output, _ITEMS)
    except msgspec.ValidationError:
        return (uamp.TextContent(text=row.text),) if row.text else ()


def _readable_usage(stored: object) -> uamp.UsageStats | None:
    try:
        return msgspec.convert(stored, uamp.UsageStats) if stored else None
    except msgspec.ValidationError:
        return None


def _readable_config(session: Session | None) -> uamp.SessionConfig:
    try:
        return msgspec.convert({} if session is None else session.config, uamp.SessionConfig)
    except msgspec.ValidationError:
        return uamp.SessionConfig()


def _readable_request(row: Response) -> ResponseRequest:
    try:
        return msgspec.convert(row.request, ResponseRequest)
    except msgspec.ValidationError:
        return ResponseRequest()


def _spec_of(row: Response) -> AgentSpec:
    """Return the agent at the prices of a response, or at today's if its row is unreadable."""
    spec = agents.get_spec(row.agent_id)
    try:
        return with_agreed_prices(spec, msgspec.convert(row.request, ResponseRequest).pricing)
    except msgspec.ValidationError:
        return spec


def _joined_sessions() -> QuerySet[Session]:
    return Session.objects.select_related("parent_call", "chat", "agent", "user")


def _context(
    row: Response,
    session: Session | None,
    request: RunRequest,
    *,
    usage: uamp.UsageStats | None,
    is_unstarted: bool = False,
) -> RunContext:
    spec = _spec_of(row)
    question_id, digest = _question_of(row)
    return RunContext(
        parent=None if session is None else parent_of(session),
        user_id=None if session is None else session.user_id,
        counted_as="" if session is None else _counted_as(session),
        credential=_readable_request(row).credential,
        actors=_readable_request(row).actors,
        protocol="" if session is None else session.transport,
        payment=_payment(row, session, spec),
        usage_before=usage,
        inferences_before=tuple(read_inferences(row.inferences)),
        question_id=question_id,
        question_hash=digest,
        replaces=_readable_request(row).replaces,
        thread=_readable_request(row).thread,
        response_id=row.pk,
        chat_id=row.chat_id,
        session_id=row.session_id,
        spec=spec,
        request=request,
        fence=row.fence,
        is_unstarted=is_unstarted,
        state=ResponseState(row.status),
        fan_out=True,
    )


def _question_of(row: Response) -> tuple[str | None, str]:
    """Return the message that a response answers, and its hash when the response began.

    Rows that the release before began have no hash: the message is then hashed as it is now.
    """
    request = _readable_request(row)
    if request.question_id is not None or row.message_id is None:
        return request.question_id, request.question_hash
    question = question_as_it_is(row.message_id)
    return (None, "") if question is None else (question.id, question_hash(*question))


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


def _continued(
    row: Response, checkpoint: ResponseCheckpoint | None, *, is_unstarted: bool
) -> RunContext:
    """Return the context of a continued response: same id, stored output, same tools."""
    session = _joined_sessions().get(pk=row.session_id)
    resume = () if is_unstarted else _with_results(row)
    handle = None if is_unstarted else tasks.load(row.pk)
    usage = _readable_usage(row.usage)
    if row.status != ResponseState.WAITING and (checkpoint is not None or _is_followed(handle)):
        resume = _beyond(row, checkpoint)
        if not resume:
            # What follows the checkpoint runs again, and its usage is counted then.
            resume = () if checkpoint is None else checkpoint.output
            usage = None if checkpoint is None else checkpoint.usage or usage
    config = msgspec.convert(session.config, uamp.SessionConfig)
    overrides = msgspec.convert(row.request, ResponseRequest)
    # As at its beginning: the messages before the turn's own, and that one.
    limit = settings.UAMP_HISTORY_MESSAGES + overrides.has_message
    messages = chat_history.history_until(row.chat_id, message_id=row.message_id, limit=limit)
    in_thread = (
        ()
        if overrides.thread is None
        else chat_history.history_until(
            row.chat_id, message_id=row.message_id, limit=limit, thread=overrides.thread
        )
    )
    if overrides.context is None:
        member = next((m for m in agent_members(row.chat_id) if m.agent_id == row.agent_id), None)
        visible, shared = (
            visible_messages(member, messages, in_thread),
            session.chat.kind == "group",
        )
    else:
        own = row.message_id if overrides.has_message else None
        visible, shared = [m for m in (*messages, *in_thread) if m.message_id == own][:1], False
    history = history_of(
        overrides,
        [message.view_for(row.agent_id, shared=shared) for message in visible],
        has_message=overrides.has_message,
    )
    request = run_request(
        row.pk,
        config,
        overrides,
        history,
        resume=resume,
        checkpoint=checkpoint,
        remote_task=handle,
        written=(usage.output_tokens or 0) if usage else 0,
        asker=_counted_as(session),
        shared_state=read_state(row.chat_id),
    )
    return _context(row, session, request, usage=usage, is_unstarted=is_unstarted)


def _beyond(row: Response, checkpoint: ResponseCheckpoint | None) -> tuple[uamp.ContentItem, ...]:
    """Return the stored output up to the last tool, if tools have run since the checkpoint.

    Their process died after the results and before the next checkpoint, and they must not run
    twice.
    """
    output = () if checkpoint is None else checkpoint.output
    call_ids = {i.tool_call.id for i in output if isinstance(i, uamp.ToolCallContent)}
    if call_ids.issuperset(call.call_id for call in calls.tool_calls_of(row.pk)):
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
    call_ids = {i.tool_call.id for i in items if isinstance(i, uamp.ToolCallContent)}
    items += [
        uamp.ToolCallContent(
            tool_call=uamp.ToolCallData(id=call.call_id, name=call.name, arguments=call.arguments)
        )
        for call in rows
        if call.call_id not in call_ids
    ]
    result_ids = {i.tool_result.call_id for i in items if isinstance(i, uamp.ToolResultContent)}
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
        if call.call_id not in result_ids and call.status not in ToolCall.OPEN
    ]
    return tuple(items)
