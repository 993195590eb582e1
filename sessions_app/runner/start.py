"""Where every transport enters: inputs and a `response.create` become a turn (DESIGN §3, step 3).

One transaction writes the message, the responses and their log entries; then the agents run, and
whoever asked listens to them in this process.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec
from django.conf import settings
from django.utils import timezone

import uamp
from agents_app import selectors as agents
from chat_app import contents, fanout
from chat_app import selectors as chats
from chat_app.services import Append, NewEvent, NewMessage, layer_messages, message_event
from sessions_app import database, payers, paying, services
from sessions_app.frames import new_event_id, now_ms
from sessions_app.models import new_response_id
from sessions_app.paying import Reservation
from sessions_app.prices import bill, step_usage
from sessions_app.runner import delegation
from sessions_app.runner import process as processes
from sessions_app.runner.context import RunContext
from sessions_app.runner.request import (
    ResponseRequest,
    StartedTurn,
    TurnRequest,
    run_request,
)
from sessions_app.turn_store import StoreBusy
from sessions_app.turn_writes import start_events
from sessions_app.turns import NewResponse, Refused, Repeated, Start, Started
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessions_app.runner.context import Listener
    from sessions_app.runner.process import Process
    from sessions_app.runner.run import Run
    from sessions_app.selectors import OpenSession

RESPONSES_PER_SESSION: Final = 8
MENTION: Final = re.compile(r"(?<![\w@/.])@([\w][\w.-]*)")

REFUSALS: Final = {
    ErrorCode.UNKNOWN_SESSION: "The session has ended. Create a new one.",
    ErrorCode.CHAT_NOT_FOUND: "There is no such chat, or you are not in it.",
    ErrorCode.EVENT_ID_CONFLICT: "This event_id was used for another event.",
}


@dataclass(kw_only=True, slots=True)
class _Turn:
    """A turn between assembly and its write."""

    message: NewMessage | None
    overrides: ResponseRequest
    targets: list[chats.AgentMember] = field(default_factory=list)


async def start_response(request: TurnRequest, listener: Listener | None) -> StartedTurn:
    """Start a turn and let `listener` hear its responses; without one its chat's group does.

    Raises RemoteProtocolError; then nothing was written. A message of a shared chat that addresses
    no agent is kept and starts no response.
    """
    process = processes.current()
    _check_room(process, request.session)
    began = timezone.now()
    turn = await _assemble(request)
    turn.targets = await _targets(request.session, turn)
    start = _start_of(process, request, turn)
    start = replace(start, reservations=await _reservations(process, request, turn, start))
    try:
        outcome = await process.store.start(start)
    except StoreBusy:
        outcome = Refused(ErrorCode.BUSY)
    if isinstance(outcome, Started):
        return await _launch(process, request, turn, start, outcome, listener)
    if start.content_ids:
        await database.run(contents.discard, start.content_ids, since=began)
    if isinstance(outcome, Repeated):
        return StartedTurn(response_ids=outcome.response_ids, repeated=True)
    if outcome.code == ErrorCode.BUSY:
        raise _busy()
    code = ErrorCode(outcome.code)
    raise RemoteProtocolError(code, REFUSALS[code], event_id=request.event_id)


def _busy() -> RemoteProtocolError:
    return RemoteProtocolError(
        ErrorCode.BUSY,
        "The server has no room for another response now. Try again in a moment.",
        details={"retry_after": 2},
    )


def _check_room(process: Process, session: OpenSession) -> None:
    if process.is_full:
        raise _busy()
    running = process.runs_of_session[session.id]
    if running >= RESPONSES_PER_SESSION:
        raise RemoteProtocolError(
            ErrorCode.QUEUE_FULL,
            f"{running} responses of this session are running. Wait for one, or cancel one.",
        )


# --- From inputs to a turn ---


async def _assemble(request: TurnRequest) -> _Turn:
    session, create = request.session, request.create
    assembled = uamp.assemble(request.inputs, new_id=lambda: str(uuid.uuid4()))
    message, context = assembled.message, list(assembled.context)
    config = create.response or ev.ResponseConfig()
    if config.messages is not None:
        context = [*config.messages, *context]
    if message is None and context and context[-1].role == "user":
        message = context.pop()
    if session.is_shared and context:
        raise RemoteProtocolError(
            ErrorCode.FORBIDDEN_ROLE,
            "In a shared chat the conversation is the chat's own: send one user message.",
        )
    stateless = config.messages is not None or any(
        isinstance(event, ev.InputText) and event.messages is not None for event in request.inputs
    )
    return _Turn(
        message=(None if message is None else await _new_message(request, message)),
        overrides=ResponseRequest(
            instructions=config.instructions,
            tools=config.tools,
            modalities=config.modalities,
            response_format=create.response_format,
            model=config.model,
            temperature=config.temperature,
            max_tokens=config.max_tokens,
            context=tuple(context) if stateless else None,
            before=() if stateless else tuple(context),
        ),
    )


async def _new_message(request: TurnRequest, message: uamp.Message) -> NewMessage:
    items = message.content_items or ()
    principal = request.session.principal
    text_only = all(isinstance(item, uamp.TextContent) for item in items)
    if not text_only:
        items = await database.run(services.take_media, items, principal)
    if request.attachments:
        said = items or (uamp.TextContent(text=message.content or ""),)
        items, text_only = (*said, *request.attachments), False
    content = message.content if message.content is not None else uamp.text_of(items)
    return NewMessage(
        id=f"msg_{uuid.uuid4().hex}",
        role="user",
        at=timezone.now(),
        name=principal.username,
        content=content,
        content_items=() if text_only else items,
        sender_user_id=principal.user_id,
        client_event_id=request.create.event_id,
    )


async def _targets(session: OpenSession, turn: _Turn) -> list[chats.AgentMember]:
    """Return who answers: the session's agent, or the members whose trigger rule says so."""
    if session.agent_id is not None and session.agent_name is not None:
        if not await _may_answer(session, session.agent_id):
            raise RemoteProtocolError(
                ErrorCode.AGENT_NOT_FOUND, "The agent of this session is not there any more."
            )
        return [chats.AgentMember(session.agent_id, session.agent_name, "always")]
    members = await database.run(chats.agent_members, session.chat_id)
    if turn.message is None:
        targets = [m for m in members if m.trigger == "always"] or members[:1]
        if not targets:
            raise RemoteProtocolError(
                ErrorCode.AGENT_NOT_FOUND, "There is no agent in this chat that could answer."
            )
        return targets
    return triggered(turn.message.content, members)


async def _may_answer(session: OpenSession, agent_id: str) -> bool:
    """Return whether the session's agent is still in its chat, and still for its person."""
    if session.chat_scoped:
        members = await database.run(chats.agent_members, session.chat_id)
        return agent_id in {member.agent_id for member in members}
    try:
        spec = await _spec(agent_id)
    except agents.AgentNotFoundError:
        return False
    viewer = session.principal.user_id
    if session.parent is not None:
        # Who gave the work was asked when it was given.
        return spec.is_enabled
    if spec.is_public or (viewer is not None and spec.owner_id == viewer):
        return spec.is_enabled
    return await database.run(agents.get_agent, spec.name, viewer=viewer) is not None


def triggered(text: str, members: Sequence[chats.AgentMember]) -> list[chats.AgentMember]:
    """Return the agents that a message of a shared chat makes answer, in the order of joining."""
    mentioned = {name.rstrip(".-").casefold() for name in MENTION.findall(text)}
    return [
        member
        for member in members
        if member.trigger == "always"
        or (member.trigger == "mention" and member.name.casefold() in mentioned)
    ]


# --- The write, and what follows it ---


def _start_of(process: Process, request: TurnRequest, turn: _Turn) -> Start:
    session, message = request.session, turn.message
    at = message.at if message else timezone.now()
    plain = msgspec.to_builtins(turn.overrides)
    return Start(
        session_id=session.id,
        chat_id=session.chat_id,
        user_id=session.principal.user_id,
        event_id=request.event_id,
        sha256=request.sha256,
        message=message,
        message_event=message_event(session.chat_id, message) if message else None,
        responses=[_new_response(session, target, message, plain) for target in turn.targets],
        content_ids=contents.content_ids(message.content_items) if message else (),
        pending_input_ids=request.pending_input_ids,
        process=process.id,
        lease_until=at + timedelta(seconds=settings.UAMP_LEASE_SECONDS),
        at=at,
    )


def _new_response(
    session: OpenSession,
    target: chats.AgentMember,
    message: NewMessage | None,
    overrides: dict[str, object],
) -> NewResponse:
    response_id = new_response_id()
    event = ev.ResponseCreated(
        event_id=new_event_id(),
        timestamp=now_ms(),
        response_id=response_id,
        agent=target.name,
        message_id=message.id if message else None,
        chat_id=session.chat_id,
    )
    return NewResponse(
        id=response_id,
        agent_id=target.agent_id,
        request=overrides,
        event=NewEvent(
            type="response.created", payload=uamp.to_dict(event), response_id=response_id
        ),
    )


async def _launch(
    process: Process,
    request: TurnRequest,
    turn: _Turn,
    start: Start,
    outcome: Started,
    listener: Listener | None,
) -> StartedTurn:
    session, first_seq = request.session, outcome.first_seq
    before = []
    if turn.overrides.context is None:
        before = await process.history.before(session.chat_id, first_seq)
    append = Append(chat_id=session.chat_id, events=start_events(start), at=start.at)
    process.history.append(session.chat_id, first_seq, len(append.events), start.message)
    messages = layer_messages(append, first_seq, origin=request.origin)
    if listener is not None:
        for told in messages:
            listener.event(told["seq"], told["event"], told["response"], told["frame"])
    fan_out = listener is None or process.is_heard_by_others(session)
    if fan_out:
        await fanout.publish(session.chat_id, messages)
    spoken = [*before, *([process.history.of(start.message)] if start.message else [])]
    if start.message is None:
        # An answer is made again to what was said before the last one.
        while spoken and spoken[-1].role == "assistant":
            spoken.pop()
    runs = []
    for new in start.responses:
        given = turn.overrides.context
        if given is None:
            history = [m.seen_by(new.agent_id, shared=session.is_shared) for m in spoken]
        else:
            history = [*given, *(m.seen_by(new.agent_id, shared=False) for m in spoken)]
        at = len(history) - (start.message is not None)
        history[at:at] = turn.overrides.before
        context = RunContext(
            response_id=new.id,
            chat_id=session.chat_id,
            session_id=session.id,
            spec=await _spec(new.agent_id),
            request=run_request(new.id, session.config, turn.overrides, history),
            fence=1,
            fan_out=fan_out,
            usage_deltas=session.config.extensions.get("usage_delta") is True,
            origin=request.origin,
            parent=session.parent,
            user_id=session.principal.user_id,
            protocol=session.transport,
            payment=outcome.payments.get(new.id),
        )
        runs.append(launch(process, context, listener))
    return StartedTurn(response_ids=[new.id for new in start.responses], runs=runs)


async def _reservations(
    process: Process, request: TurnRequest, turn: _Turn, start: Start
) -> list[Reservation]:
    """Return what has to be reserved before the agents of a turn call their models (DESIGN D7)."""
    session = request.session
    found = []
    for new in start.responses:
        spec = await _spec(new.agent_id)
        if spec.pricing.is_free:
            continue
        given = turn.overrides.context
        if given is None and spec.pricing.input_per_1k == "0":
            given = ()
        elif given is None:
            known = await process.history.about(session.chat_id)
            given = tuple(m.seen_by(spec.id, shared=session.is_shared) for m in known)
        asked = run_request(new.id, session.config, turn.overrides, given)
        usage = step_usage(spec, asked, most=settings.UAMP_RESERVE_TOKENS)
        reservation = Reservation(
            response_id=new.id,
            purchase=payers.purchase_of(session, spec),
            amount=bill(spec.pricing, usage, {}, provider=spec.provider).total,
        )
        found.append(await _paid_first(request, spec, reservation))
    return found


async def _paid_first(
    request: TurnRequest, spec: agents.AgentSpec, wanted: Reservation
) -> Reservation:
    """Have an answer paid before anything is written, where its transport cannot ask later."""
    asker = request.session.principal.user_id
    if request.pay is None:
        return wanted
    payment = await database.run(paying.payment_now, wanted)
    if payment.source is not None or payment.payer_id != asker:
        return wanted
    return replace(wanted, source=await request.pay(request.session, spec, wanted.amount))


def launch(process: Process, context: RunContext, listener: Listener | None = None) -> Run:
    """Run a response whose row is committed; it may give work to other agents."""
    return process.launch(context, listener, begin=partial(delegation.begin, start=start_response))


async def _spec(agent_id: str) -> agents.AgentSpec:
    spec = agents.remembered(agent_id)
    return spec if spec is not None else await database.run(agents.get_spec, agent_id)
