"""Reservation of money for a turn, before priced agents call their models."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from agents_app.conversation.state_changes import SET_STATE
from chat_app.log.shared_state import read_state
from chat_app.members.agents.triggers import visible_messages
from payments_app.money import InvalidAmount
from sessions_app import database, selectors
from sessions_app.billing import chat_budgets, payers, reservations
from sessions_app.billing.continued_answers import continued_answer
from sessions_app.billing.media_weights import check_measured, media_ids, read_extents
from sessions_app.billing.reservations import Reservation
from sessions_app.billing.usage import reservation
from sessions_app.billing.weights import step_usage
from sessions_app.response.request import run_request
from sessions_app.turn.targets import agent_spec
from sessions_app.turn.threads import thread_before
from sessions_app.turn.versions import conversation
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_app.runtime.agent_run import RunRequest
    from agents_app.selectors import AgentSpec
    from chat_app.log.entries import NewMessage
    from chat_app.members.membership import AgentMember
    from payments_app.money import Money
    from sessions_app.billing.continued_answers import ContinuedAnswer
    from sessions_app.process.history import History
    from sessions_app.store.records import Start
    from sessions_app.turn.assembly import AssembledTurn
    from sessions_app.turn.request import TurnRequest


async def reservations_of(
    history: History,
    request: TurnRequest,
    turn: AssembledTurn,
    start: Start,
    targets: Sequence[AgentMember],
    *,
    continued: ContinuedAnswer | None = None,
) -> list[Reservation]:
    """Return the reservations to write with a turn; raises RemoteProtocolError."""
    session = request.session
    result = []
    for new, target in zip(start.responses, targets, strict=True):
        spec = await agent_spec(new.agent_id)
        if continued is not None:
            spec = continued.priced(spec)
        if spec.pricing.is_free:
            continue
        context = turn.overrides.context
        if spec.pricing.reads_free:
            context = () if context is None else context
        else:
            messages = [history.of(start.message)] if start.message else []
            if context is None:
                earlier = (
                    await history.about(session.chat_id, turn.facts.last_seq)
                    if turn.replaced is None
                    else await conversation(session, turn.replaced)
                )
                in_thread = await thread_before(session.chat_id, turn.overrides.thread, None)
                if in_thread:
                    messages = visible_messages(target, earlier, [*in_thread, *messages])
                else:
                    messages = visible_messages(target, [*earlier, *messages])
            new_ones = (m.view_for(spec.id, shared=session.is_shared) for m in messages)
            context = (*(context or ()), *turn.overrides.before, *new_ones)
        run = run_request(
            new.id, session.config, turn.overrides, context, shared_state=turn.shared_state
        )
        hold = Reservation(
            response_id=new.id,
            purchase=payers.purchase_of(
                session, spec, unprompted=bool(new.request.get("unprompted"))
            ),
            amount=await _amount(request, spec, run, turn.message),
            pricing=spec.pricing,
        )
        result.append(await _paid_first(request, spec, hold))
    return result


async def with_state(
    request: TurnRequest, turn: AssembledTurn, targets: Sequence[AgentMember]
) -> AssembledTurn:
    """Return a turn with the chat's state, if an agent whose input has a price is shown it.

    It is read once: the amount that is reserved and the run go by the same state.
    """
    specs = [await agent_spec(target.agent_id) for target in targets]
    if not any(SET_STATE in spec.tools and not spec.pricing.reads_free for spec in specs):
        return turn
    state = await database.run(read_state, request.session.chat_id)
    return msgspec.structs.replace(turn, shared_state=state)


async def continuing(
    request: TurnRequest, turn: AssembledTurn, targets: Sequence[AgentMember]
) -> ContinuedAnswer | None:
    """Return the answer that a turn continues at the price that it has paid, if any."""
    if turn.returned is None or len(targets) != 1:
        return None
    spec = await agent_spec(targets[0].agent_id)
    if spec.pricing.is_free:
        return None
    find = partial(continued_answer, agent_id=spec.id, limit=spec.max_steps)
    return await database.run(find, turn.returned, request.session.principal)


def beyond_budgets(holds: Sequence[Reservation]) -> dict[str, chat_budgets.BudgetReached]:
    """Return the responses that their chat's budgets do not cover, with the reasons. Synchronous.

    Nothing is locked: concurrent turns are checked again when the money is reserved.
    """
    guard = chat_budgets.ChatBudgetGuard(hold.purchase.chat_id for hold in holds)
    beyond = {}
    for hold in holds:
        where = (hold.purchase.chat_id, hold.purchase.agent_id, hold.amount)
        try:
            guard.allow(*where)
        except chat_budgets.BudgetReached as error:
            beyond[hold.response_id] = error
        else:
            guard.took(*where)
    return beyond


async def _amount(
    request: TurnRequest, spec: AgentSpec, run: RunRequest, message: NewMessage | None
) -> Money:
    """Return the most an answer may cost up to its second step; raises RemoteProtocolError."""
    ids = media_ids(run.history)
    extents = await read_extents(ids, request.session.principal.counted_as) if ids else {}
    is_for_people = request.session.is_shared
    if message is not None and not is_for_people and not spec.pricing.reads_free:
        check_measured(spec, message.content_items, extents)
    try:
        return reservation(spec, step_usage(spec, run, extents))
    except InvalidAmount:
        raise RemoteProtocolError(
            ErrorCode.INVALID_EVENT,
            f"An answer of {spec.name} may cost more than can be reserved. Ask for fewer tokens.",
        ) from None


async def _paid_first(request: TurnRequest, spec: AgentSpec, hold: Reservation) -> Reservation:
    """Have an answer paid up front if its transport cannot ask for payment later."""
    asker = request.session.principal.user_id
    if request.pay is None or not hold.amount:
        # If only tools cost money, they are paid when one is called.
        return hold
    session_id = request.session.id
    if await database.run(selectors.responses_started_by, session_id, request.event_id):
        # A repeated, already paid event: writing the turn will find its responses.
        return hold
    payment = await database.run(reservations.payment_now, hold)
    if payment.source is not None or payment.payer_id != asker:
        return hold
    return replace(hold, source=await request.pay(request.session, spec, hold.amount))
