"""Launching a committed turn: publish its events and run its agents."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from chat_app.log import fanout
from chat_app.log.entries import Append, layer_messages
from chat_app.members.agents.triggers import visible_messages
from sessions_app import database
from sessions_app.response.context import RunContext
from sessions_app.response.request import history_of, run_request, with_agreed_prices
from sessions_app.store.orm import start_events
from sessions_app.turn.request import StartedTurn
from sessions_app.turn.targets import agent_spec
from sessions_app.turn.threads import thread_before
from sessions_app.turn.versions import conversation

if TYPE_CHECKING:
    from collections.abc import Sequence

    import uamp
    from chat_app.log.history import HistoryMessage
    from chat_app.members.membership import AgentMember
    from sessions_app.process.registry import Process
    from sessions_app.response.context import Listener
    from sessions_app.store.records import NewResponse, Start, StartCommitted
    from sessions_app.turn.assembly import AssembledTurn
    from sessions_app.turn.request import TurnRequest


async def launch(
    process: Process,
    request: TurnRequest,
    turn: AssembledTurn,
    start: Start,
    targets: Sequence[AgentMember],
    outcome: StartCommitted,
    listener: Listener | None,
) -> StartedTurn:
    """Publish the events of a committed turn and run its agents."""
    session, first_seq = request.session, outcome.first_seq
    # A message that no agent answers needs no conversation.
    before = await _before(process, request, turn, first_seq) if targets else []
    append = Append(chat_id=session.chat_id, events=start_events(start), at=start.at)
    process.history.append(session.chat_id, first_seq, len(append.events), start.message)
    fan_out = listener is None or process.has_other_listeners(session)
    messages = layer_messages(append, first_seq, origin=request.origin)
    if fan_out:
        await fanout.publish(session.chat_id, messages)
    in_thread = await _thread_of(request, turn, first_seq) if targets else []
    spoken = in_thread or before
    if start.message is not None:
        spoken.append(process.history.of(start.message))
    elif not request.asked:
        # Regenerated answers reply to the messages before the last answer.
        while spoken and spoken[-1].role == "assistant":
            spoken.pop()
    contexts = []
    for new, target in zip(start.responses, targets, strict=True):
        history = _history_of(target, request, turn, before, in_thread)
        contexts.append(await _context_of(new, request, turn, outcome, history, fan_out=fan_out))
    runs = [process.runs.launch(context, listener) for context in contexts]
    if listener is not None:
        # Runs begin later, in their own tasks. The listener's connection sends these events
        # together with the output of the first step.
        for sent in messages:
            listener.event(sent["seq"], sent["event"], sent["response"], sent["frame"])
    return StartedTurn(response_ids=[new.id for new in start.responses], runs=runs)


async def _before(
    process: Process, request: TurnRequest, turn: AssembledTurn, first_seq: int
) -> list[HistoryMessage]:
    """Return the messages of the chat before the turn; none for a client with its own history."""
    session = request.session
    if turn.replaced is not None:
        return await conversation(session, turn.replaced)
    if turn.overrides.context is not None:
        return []
    return await database.insist(partial(process.history.before, session.chat_id, first_seq))


async def _thread_of(
    request: TurnRequest, turn: AssembledTurn, first_seq: int
) -> list[HistoryMessage]:
    """Return the earlier messages of the turn's thread; none outside a thread."""
    root_id, session = turn.overrides.thread, request.session
    if root_id is None or turn.overrides.context is not None:
        return []
    if turn.replaced is not None:
        return await conversation(session, turn.replaced, root_id)
    return await thread_before(session.chat_id, root_id, first_seq)


def _history_of(
    target: AgentMember,
    request: TurnRequest,
    turn: AssembledTurn,
    spoken: Sequence[HistoryMessage],
    in_thread: Sequence[HistoryMessage],
) -> list[uamp.Message]:
    """Return the conversation that an agent answers, ending with the turn's message."""
    visible, shared = spoken, False
    if turn.overrides.context is None:
        visible, shared = visible_messages(target, spoken, in_thread), request.session.is_shared
    views = [message.view_for(target.agent_id, shared=shared) for message in visible]
    return history_of(turn.overrides, views, has_message=turn.message is not None)


async def _context_of(
    new: NewResponse,
    request: TurnRequest,
    turn: AssembledTurn,
    outcome: StartCommitted,
    history: Sequence[uamp.Message],
    *,
    fan_out: bool,
) -> RunContext:
    session = request.session
    return RunContext(
        response_id=new.id,
        chat_id=session.chat_id,
        session_id=session.id,
        spec=with_agreed_prices(
            await database.insist(partial(agent_spec, new.agent_id)), new.request.get("pricing")
        ),
        request=run_request(
            new.id,
            session.config,
            turn.overrides,
            history,
            asker=request.person,
            shared_state=turn.shared_state,
        ),
        fence=1,
        fan_out=fan_out,
        origin=request.origin,
        parent=session.parent,
        question_id=turn.overrides.question_id,
        question_hash=turn.overrides.question_hash,
        replaces=turn.overrides.replaces,
        thread=turn.overrides.thread,
        user_id=session.principal.user_id,
        counted_as=request.person,
        credential=session.principal.credential,
        actors=session.principal.actors,
        protocol=session.transport,
        payment=outcome.payments.get(new.id),
        payment_refused=session.payment_refused,
    )
