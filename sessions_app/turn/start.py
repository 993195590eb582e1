"""The entry point of every transport: inputs and a `response.create` become a turn.

One transaction writes the message, the responses and their log entries. Then the agents run, and
the listener receives their responses in this process.
"""

from __future__ import annotations

from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.conf import settings
from django.utils import timezone

import uamp
from chat_app.contents import storage
from chat_app.conversation.versions import last_question
from chat_app.ids import new_event_id
from chat_app.log.entries import NewEvent, message_event
from chat_app.members.agents.agent_mentions import MentionStop, append_stops
from sessions_app import database
from sessions_app.billing.continued_answers import AlreadyContinued
from sessions_app.frames import now_ms
from sessions_app.models import new_response_id
from sessions_app.process import registry
from sessions_app.process.capacity import busy
from sessions_app.response.question import hash_of_message, question_hash
from sessions_app.store.group_commit import StoreBusy
from sessions_app.store.records import (
    NewResponse,
    Start,
    StartCommitted,
    StartRefused,
    StartRepeated,
)
from sessions_app.turn.assembly import assemble, check_content, store_files
from sessions_app.turn.facts import queue_facts_of
from sessions_app.turn.holds import beyond_budgets, continuing, reservations_of, with_state
from sessions_app.turn.launch import launch
from sessions_app.turn.options import check_taken
from sessions_app.turn.queueing import queued
from sessions_app.turn.request import StartedTurn, TurnRequest
from sessions_app.turn.targets import is_unprompted, named_agents, targets_of
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from chat_app.members.membership import AgentMember
    from sessions_app.billing.continued_answers import ContinuedAnswer
    from sessions_app.billing.reservations import Reservation
    from sessions_app.process.registry import Process
    from sessions_app.records import OpenSession
    from sessions_app.response.context import Listener
    from sessions_app.turn.assembly import AssembledTurn

STOPPING_SECONDS: Final = 2
"""When to retry a turn that a stopping server refused."""

REFUSALS: Final = {
    ErrorCode.UNKNOWN_SESSION: "The session has ended. Create a new one.",
    ErrorCode.CHAT_NOT_FOUND: "There is no such chat, or you are not in it.",
    ErrorCode.EVENT_ID_CONFLICT: "This event_id was used for another event.",
}


async def start_response(request: TurnRequest, listener: Listener | None) -> StartedTurn:
    """Start a turn whose responses go to `listener` or, without one, to the chat's group.

    Raises RemoteProtocolError, in which case nothing was written. A message in a shared chat that
    addresses no agent is stored but starts no response. With `queue`, the turn is queued while
    answers are running in its chat; in a mirror, it is queued until its home has ordered it (ADR
    66).
    """
    process = registry.current()
    if process.draining and request.session.parent is None:
        # Delegated work is part of an answer that may still finish.
        raise _stopping()
    if request.create.queue or request.session.home is not None:
        await check_content(request)
        facts = await queue_facts_of(request)
        if request.create.agents is not None:
            named_agents(request, request.create.agents, facts.members)
        if await queued(request, facts):
            return StartedTurn(response_ids=(), queued=True)
    # An early check, before doing any work; the number of answers is not known yet.
    process.capacity.check(request.session.id, request.person, 1)
    await check_content(request)
    began = timezone.now()
    turn = await assemble(request, process.history)
    with ExitStack() as room:
        targets, stops = targets_of(request, turn.message, turn.facts)
        await check_taken(request.session.config, turn.overrides, targets)
        room.enter_context(
            process.capacity.reserved(request.session.id, request.person, len(targets))
        )
        if request.admit is not None:
            await request.admit(len(targets), 0)
        turn = await store_files(request, turn)
        try:
            if request.admit is not None:
                await request.admit(0, turn.size)
            started = await _write(process, request, turn, targets, listener, stops)
        except Exception:
            # A cancelled turn may still be written, with its files.
            await _discard(turn, began)
            raise
    if started.repeated:
        await _discard(turn, began)
    if stops and not started.repeated:
        write = partial(
            append_stops,
            request.session.chat_id,
            stops,
            message_id=turn.message.id if turn.message else None,
            thread=turn.overrides.thread,
        )
        await database.run(write)
        started = msgspec.structs.replace(started, stopped=tuple(stops))
    return started


async def _discard(turn: AssembledTurn, began: datetime) -> None:
    """Delete the files that were stored for a turn and that no message shows."""
    if turn.content_ids:
        await database.run(storage.discard, turn.content_ids, since=began)


def _stopping() -> RemoteProtocolError:
    return RemoteProtocolError(
        ErrorCode.UNAVAILABLE,
        "The server is stopping. Connect again and repeat this in a moment.",
        details={"retry_after": STOPPING_SECONDS},
    )


async def _write(
    process: Process,
    request: TurnRequest,
    turn: AssembledTurn,
    targets: Sequence[AgentMember],
    listener: Listener | None,
    stops: list[MentionStop],
) -> StartedTurn:
    continued = await continuing(request, turn, targets)
    if continued is not None:
        overrides = msgspec.structs.replace(turn.overrides, rounds=continued.rounds)
        turn = msgspec.structs.replace(turn, overrides=overrides)
    turn = await with_state(request, turn, targets)
    if targets:
        turn = await _with_question(request, turn)
    start = _start_of(process, request, turn, targets, continued)
    responses = start.responses
    if reservations := await reservations_of(
        process.history, request, turn, start, targets, continued=continued
    ):
        beyond = await database.run(beyond_budgets, reservations)
        start = _without(start, reservations, beyond)
        stops += [
            MentionStop(
                agent_id=target.agent_id,
                agent=target.name,
                reason=beyond[new.id].reason,
                words=f"{target.name} does not answer. {beyond[new.id]}",
            )
            for new, target in zip(responses, targets, strict=True)
            if new.id in beyond
        ]
        targets = [
            target for new, target in zip(responses, targets, strict=True) if new.id not in beyond
        ]
    outcome = await _insist(process, start)
    if isinstance(outcome, StartCommitted):
        return await launch(process, request, turn, start, targets, outcome, listener)
    if isinstance(outcome, StartRepeated):
        return StartedTurn(response_ids=outcome.response_ids, repeated=True)
    if outcome.code == ErrorCode.BUSY:
        raise busy()
    code = ErrorCode(outcome.code)
    raise RemoteProtocolError(code, REFUSALS[code], event_id=request.event_id)


async def _insist(process: Process, start: Start) -> StartCommitted | StartRepeated | StartRefused:
    try:
        # If the reply to COMMIT is lost, repeating the write finds what was written.
        return await database.insist(partial(process.store.start, start))
    except (StoreBusy, AlreadyContinued):
        return StartRefused(ErrorCode.BUSY)


def _without(start: Start, reservations: Sequence[Reservation], left_out: Collection[str]) -> Start:
    """Return the turn with its reservations and prices, minus the responses in `left_out`."""
    agreed = {reservation.response_id: _agreed(reservation) for reservation in reservations}
    return msgspec.structs.replace(
        start,
        responses=[
            msgspec.structs.replace(new, request={**new.request, **agreed[new.id]})
            if new.id in agreed
            else new
            for new in start.responses
            if new.id not in left_out
        ],
        reservations=[
            reservation for reservation in reservations if reservation.response_id not in left_out
        ],
    )


def _agreed(reservation: Reservation) -> dict[str, Any]:
    """Return the prices of a response, and the token with which its request was paid up front."""
    agreed = {"pricing": msgspec.to_builtins(reservation.pricing)}
    if reservation.source is not None and reservation.source.token_id:
        agreed["payment_token"] = reservation.source.token_id
    return agreed


async def _with_question(request: TurnRequest, turn: AssembledTurn) -> AssembledTurn:
    """Return a turn whose overrides have the message that its responses answer, and its hash.

    That is the turn's own message, the answer that mentions the agents, the question of a
    regenerated answer or the last message of the chat that no agent wrote; none if the conversation
    ends with a message that the client sent along, which is not stored.
    """
    overrides = turn.overrides
    if (message := turn.message or request.mentioned_in) is not None:
        question_id, digest = message.id, await hash_of_message(message)
    elif turn.replaced is not None:
        question_id, digest = turn.replaced.question_id, turn.replaced.question_hash
    elif overrides.context is not None or overrides.before:
        return turn
    else:
        question = await database.run(last_question, request.session.chat_id)
        if question is None:
            return turn
        question_id, digest = question.id, question_hash(*question)
    overrides = msgspec.structs.replace(overrides, question_id=question_id, question_hash=digest)
    return msgspec.structs.replace(turn, overrides=overrides)


def _start_of(
    process: Process,
    request: TurnRequest,
    turn: AssembledTurn,
    targets: Sequence[AgentMember],
    continued: ContinuedAnswer | None,
) -> Start:
    session, message = request.session, turn.message
    at = message.at if message else timezone.now()
    text = None if message is None else message.content
    unprompted = {target.agent_id for target in targets if is_unprompted(request, target, text)}
    plain = msgspec.to_builtins(turn.overrides)
    return Start(
        session_id=session.id,
        chat_id=session.chat_id,
        user_id=session.principal.user_id,
        event_id=request.event_id,
        sha256=request.sha256,
        message=message,
        message_event=message_event(session.chat_id, message) if message else None,
        responses=[
            _new_response(
                session,
                target,
                turn,
                {**plain, "unprompted": True} if target.agent_id in unprompted else plain,
            )
            for target in targets
        ],
        question_id=turn.replaced.question_id if turn.replaced else None,
        content_ids=turn.content_ids,
        pending_input_ids=request.pending_input_ids,
        continued=continued,
        process=process.id,
        lease_until=at + timedelta(seconds=settings.UAMP_LEASE_SECONDS),
        at=at,
    )


def _new_response(
    session: OpenSession,
    target: AgentMember,
    turn: AssembledTurn,
    overrides: dict[str, object],
) -> NewResponse:
    response_id = new_response_id()
    question_id = turn.replaced.question_id if turn.replaced else None
    event = ev.ResponseCreated(
        event_id=new_event_id(),
        timestamp=now_ms(),
        response_id=response_id,
        agent=target.name,
        message_id=turn.message.id if turn.message else question_id,
        replaces=turn.overrides.replaces,
        thread=turn.overrides.thread,
        chat_id=session.chat_id,
        transport=session.transport,
    )
    return NewResponse(
        id=response_id,
        agent_id=target.agent_id,
        request=overrides,
        event=NewEvent(
            type="response.created", payload=uamp.to_dict(event), response_id=response_id
        ),
    )
