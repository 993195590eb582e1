"""Where every transport enters: inputs and a `response.create` become a turn.

One transaction writes the message, the responses and their log entries; then the agents run, and
whoever asked listens to them in this process.
"""

from __future__ import annotations

import asyncio
import logging
import re
import uuid
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.utils import timezone

import uamp
from agents_app import selectors as agents
from agents_app.providers.options import audio_formats
from chat_app.contents import references, storage
from chat_app.log import fanout
from chat_app.log.entries import Append, NewEvent, NewMessage, layer_messages, message_event
from chat_app.members import membership
from payments_app.money import InvalidAmount
from sessions_app import database, selectors, services
from sessions_app.billing import payers, reservations
from sessions_app.billing.reservations import Reservation
from sessions_app.billing.usage import reservation
from sessions_app.billing.weights import step_usage
from sessions_app.frames import new_event_id, now_ms
from sessions_app.models import new_response_id
from sessions_app.process import registry
from sessions_app.process.capacity import busy
from sessions_app.response.context import RunContext
from sessions_app.response.request import ResponseRequest, run_request
from sessions_app.store.group_commit import StoreBusy
from sessions_app.store.orm import start_events
from sessions_app.store.records import NewResponse, Refused, Repeated, Start, Started
from sessions_app.turn.recall import recalled
from sessions_app.turn.request import StartedTurn, TurnRequest, check_options, check_size
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import datetime

    from agents_app.runtime.agent_run import RunRequest
    from payments_app.money import Money
    from sessions_app.process.registry import Process
    from sessions_app.records import OpenSession
    from sessions_app.response.context import Listener

logger = logging.getLogger(__name__)

T = TypeVar("T")

PAUSES: Final = (0.1, 0.4)
"""Seconds before the database is asked again that lost a connection."""
STOPPING_SECONDS: Final = 2
"""When a turn is sent again that a stopping server refused."""
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
    # The bytes that it stores as text.
    size: int
    targets: list[membership.AgentMember] = field(default_factory=list)


async def start_response(request: TurnRequest, listener: Listener | None) -> StartedTurn:
    """Start a turn and let `listener` hear its responses; without one its chat's group does.

    Raises RemoteProtocolError; then nothing was written. A message of a shared chat that addresses
    no agent is kept and starts no response.
    """
    process = registry.current()
    if process.draining and request.session.parent is None:
        # What an agent gives to another one is part of an answer that may finish.
        raise _stopping()
    # Before any work is done for it; how many answers come is known later.
    process.capacity.check(request.session.id, request.person, 1)
    began = timezone.now()
    turn = await _assemble(request)
    with ExitStack() as room:
        try:
            turn.targets = await _targets(request.session, turn)
            answers = len(turn.targets)
            room.enter_context(
                process.capacity.reserved(request.session.id, request.person, answers)
            )
            if request.admit is not None:
                await request.admit(answers, turn.size)
        except RemoteProtocolError:
            if turn.message is not None:
                ids = references.content_ids(turn.message.content_items)
                await database.run(storage.discard, ids, since=began)
            raise
        return await _write(process, request, turn, listener, began=began)


def _stopping() -> RemoteProtocolError:
    return RemoteProtocolError(
        ErrorCode.UNAVAILABLE,
        "The server is stopping. Connect again and repeat this in a moment.",
        details={"retry_after": STOPPING_SECONDS},
    )


async def _write(
    process: Process,
    request: TurnRequest,
    turn: _Turn,
    listener: Listener | None,
    *,
    began: datetime,
) -> StartedTurn:
    start = _start_of(process, request, turn)
    start = replace(start, reservations=await _reservations(process, request, turn, start))
    try:
        # A lost answer to COMMIT hides what was written: the same write again finds it.
        outcome = await _surely(partial(process.store.start, start))
    except StoreBusy:
        outcome = Refused(ErrorCode.BUSY)
    if isinstance(outcome, Started):
        return await _launch(process, request, turn, start, outcome, listener)
    if start.content_ids:
        await database.run(storage.discard, start.content_ids, since=began)
    if isinstance(outcome, Repeated):
        return StartedTurn(response_ids=outcome.response_ids, repeated=True)
    if outcome.code == ErrorCode.BUSY:
        raise busy()
    code = ErrorCode(outcome.code)
    raise RemoteProtocolError(code, REFUSALS[code], event_id=request.event_id)


async def _surely(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask the database again where a connection was lost: a turn that is written has to begin.

    Its client would hear `unavailable` for what was done, and ask for it once more.
    """
    for pause in PAUSES:
        try:
            return await ask()
        except (OperationalError, InterfaceError):
            logger.warning("the database did not answer; asking again", exc_info=True)
            await asyncio.sleep(pause)
    return await ask()


# --- From inputs to a turn ---


async def _assemble(request: TurnRequest) -> _Turn:
    session, create = request.session, request.create
    new_ids: set[str] = set()
    assembled = uamp.assemble(request.inputs, new_id=partial(_new_content_id, new_ids))
    message, context = assembled.message, list(assembled.context)
    config = create.response or ev.ResponseConfig()
    check_options(session.config, config)
    if config.messages is not None:
        context = [*config.messages, *context]
    if message is None and context and context[-1].role == "user":
        message = context.pop()
    size = check_size(request.inputs, message)
    if session.is_shared and context:
        raise RemoteProtocolError(
            ErrorCode.FORBIDDEN_ROLE,
            "In a shared chat the conversation is the chat's own: send one user message.",
        )
    if message is not None:
        await _check_media(session, message)
    stateless = config.messages is not None or any(
        isinstance(event, ev.InputText) and event.messages is not None for event in request.inputs
    )
    if stateless:
        context = await database.run(recalled, context, session.principal.key)
    overrides = ResponseRequest(
        instructions=config.instructions,
        tools=config.tools,
        modalities=config.modalities,
        response_format=create.response_format,
        model=config.model,
        temperature=config.temperature,
        max_tokens=config.max_tokens,
        ends_at_tools=_ends_at_tools(session.config, config),
        context=tuple(context) if stateless else None,
        before=() if stateless else tuple(context),
    )
    return _Turn(
        message=(None if message is None else await _new_message(request, message, new_ids)),
        overrides=overrides,
        size=size + len(msgspec.json.encode(overrides)),
    )


async def _check_media(session: OpenSession, message: uamp.Message) -> None:
    """Refuse a medium that would reach an agent's model as a label only, where it is for it alone.

    In a shared chat a sound is for the people too, and a script reads what it likes.
    """
    if session.agent_id is None or session.is_shared:
        return
    items = [
        item
        for item in message.content_items or ()
        if isinstance(item, uamp.AudioContent | uamp.VideoContent)
    ]
    spec = await _spec(session.agent_id) if items else None
    if spec is None or spec.provider == "scripted":
        return
    formats = audio_formats(spec.provider, spec.options)
    for item in items:
        is_sound = isinstance(item, uamp.AudioContent)
        if not is_sound or item.format not in formats or not _is_kept_here(item):
            raise RemoteProtocolError(
                ErrorCode.UNSUPPORTED_MODALITY,
                f"The model of {spec.name} does not take this. Its capabilities say what it takes.",
                details={"modality": "audio" if is_sound else "video"},
            )


def _is_kept_here(item: uamp.ContentItem) -> bool:
    medium = uamp.media_of(item)
    return not isinstance(medium, uamp.MediaUrl) or uamp.content_id_of(medium.url) is not None


def _ends_at_tools(session: uamp.SessionConfig, response: ev.ResponseConfig) -> bool:
    """Return whether a call of the client's ends the response (ResponseConfig.client_tools).

    Clients that send their history in `response.messages` read `response.done` for it.
    """
    said = response.client_tools or session.extensions.get("client_tools")
    return said == "end" or (said is None and response.messages is not None)


def _new_content_id(new_ids: set[str]) -> str:
    content_id = str(uuid.uuid4())
    new_ids.add(content_id)
    return content_id


async def _new_message(
    request: TurnRequest, message: uamp.Message, new_ids: set[str]
) -> NewMessage:
    """Return the message of a turn; `new_ids` are the content ids that no client chose."""
    items = message.content_items or ()
    principal = request.session.principal
    text_only = all(isinstance(item, uamp.TextContent) for item in items)
    if not text_only:
        items = await database.run(services.take_media, items, principal, new_ids=new_ids)
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


async def _targets(session: OpenSession, turn: _Turn) -> list[membership.AgentMember]:
    """Return who answers: the session's agent, or the members whose trigger rule says so."""
    if session.agent_id is not None and session.agent_name is not None:
        if not await _may_answer(session, session.agent_id):
            raise RemoteProtocolError(
                ErrorCode.AGENT_NOT_FOUND, "The agent of this session is not there any more."
            )
        return [membership.AgentMember(session.agent_id, session.agent_name, "always")]
    members = await database.run(membership.agent_members, session.chat_id)
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
        members = await database.run(membership.agent_members, session.chat_id)
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


def triggered(text: str, members: Sequence[membership.AgentMember]) -> list[membership.AgentMember]:
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
        content_ids=references.content_ids(message.content_items) if message else (),
        pending_input_ids=request.pending_input_ids,
        process=process.id,
        lease_until=at + timedelta(seconds=settings.UAMP_LEASE_SECONDS),
        at=at,
    )


def _new_response(
    session: OpenSession,
    target: membership.AgentMember,
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
        before = await _surely(partial(process.history.before, session.chat_id, first_seq))
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
            spec=await _surely(partial(_spec, new.agent_id)),
            request=run_request(
                new.id, session.config, turn.overrides, history, asker=request.person
            ),
            fence=1,
            fan_out=fan_out,
            origin=request.origin,
            parent=session.parent,
            user_id=session.principal.user_id,
            counted_as=request.person,
            protocol=session.transport,
            payment=outcome.payments.get(new.id),
            payment_refused=session.payment_refused,
        )
        runs.append(process.runs.launch(context, listener))
    return StartedTurn(response_ids=[new.id for new in start.responses], runs=runs)


async def _reservations(
    process: Process, request: TurnRequest, turn: _Turn, start: Start
) -> list[Reservation]:
    """Return what has to be reserved before the agents of a turn call their models."""
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
        if spec.pricing.input_per_1k != "0":
            said = [process.history.of(start.message)] if start.message else []
            new_ones = (m.seen_by(spec.id, shared=session.is_shared) for m in said)
            given = (*given, *turn.overrides.before, *new_ones)
        asked = run_request(new.id, session.config, turn.overrides, given)
        wanted = Reservation(
            response_id=new.id,
            purchase=payers.purchase_of(session, spec),
            amount=_amount(spec, asked),
        )
        found.append(await _paid_first(request, spec, wanted))
    return found


def _amount(spec: agents.AgentSpec, asked: RunRequest) -> Money:
    """Return what an answer may cost up to its second step; raises RemoteProtocolError."""
    try:
        return reservation(spec, step_usage(spec, asked))
    except InvalidAmount:
        raise RemoteProtocolError(
            ErrorCode.INVALID_EVENT,
            f"An answer of {spec.name} may cost more than can be reserved. Ask for fewer tokens.",
        ) from None


async def _paid_first(
    request: TurnRequest, spec: agents.AgentSpec, wanted: Reservation
) -> Reservation:
    """Have an answer paid before anything is written, where its transport cannot ask later."""
    asker = request.session.principal.user_id
    if request.pay is None or not wanted.amount:
        # What only its tools cost is paid when one of them is called.
        return wanted
    session_id = request.session.id
    if await database.run(selectors.responses_started_by, session_id, request.event_id):
        # It was sent before, and is paid: the write of the turn finds what it led to.
        return wanted
    payment = await database.run(reservations.payment_now, wanted)
    if payment.source is not None or payment.payer_id != asker:
        return wanted
    return replace(wanted, source=await request.pay(request.session, spec, wanted.amount))


async def _spec(agent_id: str) -> agents.AgentSpec:
    spec = agents.remembered(agent_id)
    return spec if spec is not None else await database.run(agents.get_spec, agent_id)
