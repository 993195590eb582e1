"""Payment for a trial in the admin, by the operator who tries out an agent.

As for any answer, nothing is done before it is reserved. The operator cannot be asked during a
trial, so it ends when their money or limits run out.
"""

from __future__ import annotations

import uuid
from collections import Counter
from typing import TYPE_CHECKING

from django.conf import settings

from agents_app.providers.output_limits import enforced_limit
from agents_app.runtime.agent_run import AgentError
from payments_app import services as ledger
from payments_app.money import InvalidAmount, Money
from sessions_app import database
from sessions_app.billing import reservations
from sessions_app.billing.meter import Meter
from sessions_app.billing.payers import Purchase, Source
from sessions_app.billing.unfinished import failed_charge, stopped_charge
from sessions_app.billing.usage import CAUSES, Cause, reservation
from sessions_app.billing.weights import later_prompts, step_usage, usual_input
from uamp import ErrorCode
from uamp import events as ev

if TYPE_CHECKING:
    from agents_app.runtime.agent_run import RunRequest
    from agents_app.selectors import AgentSpec
    from sessions_app.billing.usage import Bill
    from uamp import ToolCallData, UsageStats


class TrialPayment:
    """Reserves and settles the cost of a trial (agents_app.admin.trial.TrialPaymentPort)."""

    def __init__(self, user_id: int, spec: AgentSpec, request: RunRequest) -> None:
        self._id = f"trial_{uuid.uuid4().hex}"
        self._user_id = user_id
        self._spec = spec
        self._step = step_usage(spec, request)
        self._meter = Meter(
            spec,
            prompts=later_prompts(spec, request),
            limit=enforced_limit(spec, request.params),
        )
        self._meter.expect_input(usual_input(spec, request), reserved=self._step)
        self._held = Money.zero(spec.pricing.currency)
        self._covered = 0
        self._holds = 0
        self._begun: Counter[str] = Counter()

    async def open(self) -> None:
        """Reserve the first step; raises AgentError."""
        await self._need(reservation(self._spec, self._step))

    async def admit_step(self) -> None:
        """Reserve another step; raises AgentError."""
        step = self._meter.next_step(self._step)
        await self._need(self._bill(step).total)
        self._meter.reserve_input(step)

    async def admit_tool(self, call: ToolCallData) -> None:
        """Reserve the usage so far and a tool's price; raises AgentError."""
        if self._meter.has_price(call.name):
            self._begun[call.name] += 1
        await self._need(self._bill().total)
        self._meter.began(call.id)

    async def wrote(self, text: str) -> None:
        """Reserve text that the model writes into its calls; raises AgentError."""
        self._meter.wrote(text)
        await self._need(self._bill().total)

    def inference_sent(self) -> None:
        """Count the input of an inference as it is sent."""
        self._meter.mark_sent()

    async def saw(self, event: ev.Event) -> None:
        """Reserve the cost of an event before it is shown; raises AgentError."""
        match event:
            case ev.ResponseDelta(delta=ev.Delta(text=str() as text)):
                self._meter.wrote(text)
        self._meter.add(event)
        if self._meter.written > self._covered or isinstance(event, ev.UsageDelta):
            await self._need(self._bill().total)
            self._covered = self._meter.written

    async def close(self, code: str | None) -> Money:
        """Charge the usage and release the rest; return the amount charged.

        `code` is the error that ended the trial, if any.
        """
        try:
            bill = self._due(code)
            amount = bill.total
        except InvalidAmount:
            amount = self._held
        charge = reservations.AnswerCharge(
            response_id=self._id,
            chat_id="",
            agent_id=self._spec.id,
            amount=min(amount, self._held),
            protocol="trial",
        )
        if self._held:
            await database.run(reservations.settle_all, [charge])
        return charge.amount

    def _due(self, code: str | None) -> Bill:
        if code is None:
            return self._meter.due()
        # A timeout of a trial is the operator's own.
        is_stopped = code == ErrorCode.TIMEOUT or CAUSES.get(code) is Cause.ASKER
        if is_stopped:
            self._meter.count_begun({})
        else:
            self._meter.mark_unsent()
        bill = self._meter.due()
        pricing, tokens = self._spec.pricing, self._meter.tokens_written()
        if is_stopped:
            return stopped_charge(bill, pricing, has_begun=bool(tokens), tokens=tokens)
        policy = settings.UAMP_CHARGE_UNFINISHED
        return failed_charge(bill, pricing, policy, is_delivered=bool(tokens), tokens=tokens)

    def _bill(self, step: UsageStats | None = None) -> Bill:
        open_tools = self._begun - self._meter.tools
        return self._meter.bill(more=step, tools=open_tools)

    async def _need(self, cost: Money) -> None:
        if cost <= self._held:
            return
        try:
            hold = await database.run(self._reserve, cost - self._held)
        except reservations.REFUSALS as error:
            message = f"This trial costs up to {cost} {cost.asset}, from your own account. {error}"
            raise AgentError(message, code=ErrorCode.PAYMENT_REQUIRED) from error
        self._held += hold.amount

    def _reserve(self, amount: Money) -> ledger.HoldOutcome:
        self._holds += 1
        account = ledger.account_of_user(self._user_id, amount.asset)
        return reservations.reserve(
            Source(account_id=account.id, user_id=self._user_id, purpose="trial"),
            Purchase(
                chat_id="",
                agent_id=self._spec.id,
                agent=self._spec.name,
                asset=amount.asset,
                asker_id=self._user_id,
            ),
            key=f"{self._id}:{self._holds}",
            amount=amount,
            response_id=self._id,
            held=self._held,
        )
