"""Payment of a running answer: nothing is done before its cost is reserved.

Sends `payment.required`, then `payment.accepted` once before the first delta (UAMP §3.3, §7.2).
When a reservation runs low, more is reserved; if that takes a person's consent, the answer pauses
with `extra.action` `topup` and then resumes. Waits are rows; the future here only saves reading
them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from django.conf import settings
from msgspec.structs import replace as changed

from agents_app.conversation.text_weights import max_weight
from agents_app.runtime.failures import payment_is_late, unpaid
from payments_app.money import InvalidAmount, Money
from payments_app.spending.authorizations import CredentialBudgetReached
from sessions_app import database
from sessions_app.billing import chat_budgets, payers, requests, reservations, weights
from sessions_app.billing.events import (
    accepted,
    balance_event,
    payment_taken,
    required,
    revoked,
    waiting_for,
    withdrawn,
)
from sessions_app.billing.media_weights import media_ids, read_extents
from sessions_app.response.row_state import takeover_error
from sessions_app.states import PaymentState
from telemetry import log_fields
from uamp import AudioUsage, UsageStats
from uamp import events as ev

if TYPE_CHECKING:
    from payments_app.services import HoldOutcome
    from sessions_app.models import PaymentRequest
    from sessions_app.response.port import RunPort
    from sessions_app.response.row_state import Wait

logger = logging.getLogger(__name__)

WATCH_WEIGHT: Final = 200
"""How often generated text is compared with the held amount, in quarters of a token."""
HELD_SECONDS: Final = 600.0
"""When to reread the held amount: a person may take days over a tool call."""
FRESH_SECONDS: Final = 10.0
"""At the end of an answer, a held amount read this recently is not read again."""


class PaymentGuard:
    """Reserves the costs of an answer from a priced agent before its run incurs them.

    The run's task and its tools' tasks call it; a lock lets one at a time reserve or ask. Any task
    of the event loop may call `settle` and read `waiting` and `held`.
    """

    def __init__(self, port: RunPort) -> None:
        self._port, self._context = port, port.context
        self._meter = port.answer.meter
        self._payment = port.context.current_payment
        payment, context = self._payment, port.context
        self._asset = context.spec.pricing.currency
        self._held = payment.first.amount if payment.first else Money.zero(self._asset)
        self._is_known = payment.first is not None
        self._held_at = time.monotonic()
        self._step = weights.step_usage(context.spec, context.request)
        self._before = Counter(self._meter.tools)
        self._pending: Counter[str] = Counter()
        # How much of the current step's output is known to be covered, by its maximum weight.
        self._covered = 0
        self._holds = self._requests = 0
        self._lock = asyncio.Lock()
        self._wait: tuple[int, asyncio.Future[PaymentRequest]] | None = None
        # Whether a person was asked for a payment that is still outstanding.
        self._is_due = False
        # Whether the last hold is on the payer's own account.
        self._is_payers_balance = True

    @property
    def waiting(self) -> list[int]:
        """The keys of the payment requests that the answer is waiting for."""
        return [] if self._wait is None else [self._wait[0]]

    @property
    def held(self) -> Money | None:
        """The amount reserved for the answer; None after a takeover until it has been read."""
        return self._held if self._is_known else None

    @property
    def payer_id(self) -> int | None:
        """The person who pays or would be asked; None for a visitor and a pool."""
        return self._payment.payer_id

    async def open(self) -> int:
        """Have the first step paid and return the most tokens of its media; raises AgentError."""
        about, extents = (self._context.spec, self._context.request), {}
        if ids := media_ids(self._context.request.history):
            extents = await read_extents(ids, self._context.counted_as)
            self._step = weights.step_usage(*about, extents)
        self._meter.expect_input(weights.usual_input(*about, extents), reserved=self._step)
        await self._pay_first_step()
        return weights.media_tokens(*about, extents) if ids else 0

    async def _pay_first_step(self) -> None:
        first = self._payment.first
        if first is not None:
            await self._accept(first.hold_id, first.available)
            # The history may have grown since the reservation.
            await self._need(self._cost(more=self._step), action="topup")
            return
        # A continued response may have been paid before its process died.
        self._held, rows = await database.run(
            requests.so_far, self._context.response_id, self._asset
        )
        self._is_known = True
        self._requests = len(rows)
        log_fields.begin(payment_id=next((row.hold_id for row in rows if row.hold_id), None))
        if rows and rows[-1].status == PaymentState.EXPIRED:
            raise payment_is_late()
        await self._need(self._cost(more=self._step), action="")

    async def admit_step(self) -> None:
        """Let the next inference be sent once it is paid; raises AgentError."""
        step = self._meter.next_step(self._step)
        await self._need(self._cost(more=step), action="topup")
        self._meter.reserve_input(step)

    async def admit_tool(self, name: str) -> None:
        """Let a tool run once its price and the usage so far are paid; raises AgentError."""
        has_price = self._meter.has_price(name)
        if has_price:
            self._pending[name] += 1
        await self._need(self._cost(), action="tool" if has_price else "topup")

    async def wrote(self, text: str) -> None:
        """Count text that the model writes into its calls, once covered; raises AgentError."""
        await self._cover(max_weight(text))
        self._meter.wrote(text)

    async def watch(self, output: ev.Event | str) -> None:
        """Pause the answer before it publishes text that is not covered; raises AgentError."""
        if isinstance(output, str):
            await self._cover(max_weight(output))
        elif isinstance(output, ev.Thinking):
            await self._cover(max_weight(output.content))

    async def spoke(self, ms: int) -> None:
        """Pause the answer before it publishes sound that is not covered; raises AgentError."""
        spoken = weights.sound_tokens(ms)
        sound = UsageStats(output_tokens=spoken, audio=AudioUsage(output_tokens=spoken))
        if self._cost(more=sound) > self._held:
            more = UsageStats(output_tokens=self._step.output_tokens, audio=self._step.audio)
            await self._need(self._cost(more=more), action="topup")

    async def _cover(self, writes: int) -> None:
        if not writes:
            return
        begun = self._meter.max_written
        if begun + writes <= self._covered:
            return
        ahead = max(writes, WATCH_WEIGHT)
        if self._cost(ahead=ahead) <= self._held:
            self._covered = begun + ahead
            return
        if self._cost(ahead=writes) > self._held:
            # Reserve another step's worth, rather than pausing for every word. The step has already
            # read its input.
            more = UsageStats(output_tokens=self._step.output_tokens)
            await self._need(self._cost(ahead=writes, more=more), action="topup")
        self._covered = begun + writes

    async def counted(self) -> None:
        """Have usage counted by a provider paid if it exceeds the hold; raises AgentError."""
        self._covered = 0
        await self._need(self._cost(), action="topup")

    async def complete(self) -> None:
        """Have the whole answer paid before it completes; raises AgentError."""
        # Tools that were admitted and then failed are not charged.
        self._pending = Counter(self._meter.tools) - self._before
        await self._need(self._cost(), action="topup")

    async def ends(self, cost: Money) -> None:
        """Update the held amount for an answer that is ending; the charge never exceeds it.

        Money that was held but has been released is reserved again if that takes no person.
        """
        if self._is_known and time.monotonic() - self._held_at < FRESH_SECONDS:
            return
        before = self._held if self._is_known else Money.zero(self._asset)
        await self._read_held_now()
        self._is_known = True
        due = min(cost, before)
        if due <= self._held:
            return
        try:
            await self._reserve(due - self._held)
        except reservations.AnswerEnded:
            # Another process ended and settled the answer.
            return
        except (reservations.MandateRevoked, *reservations.REFUSALS) as error:
            unpaid = due - self._held
            logger.error("%s of %s stays unpaid: %s", unpaid, self._context.response_id, error)  # noqa: TRY400 a refusal

    def _cost(self, *, ahead: int = 0, more: UsageStats | None = None) -> Money:
        # Tools that ended are counted by the meter; those admitted and still running are pending.
        open_tools = self._pending - (self._meter.tools - self._before)
        try:
            bill = self._meter.bill(ahead=ahead, more=more, tools=open_tools)
        except InvalidAmount:
            raise unpaid("The answer costs more than can be reserved.") from None
        return bill.total

    async def _need(self, cost: Money, *, action: str) -> None:
        async with self._lock:
            await self._read_held()
            if cost <= self._held:
                return
            amount = cost - self._held
            await self._check_budget(amount)
            if not await self._take(amount):
                await self._ask(amount, action)

    async def _check_budget(self, amount: Money) -> None:
        """Stop before a chat budget is exceeded; payers are not asked to raise it."""
        try:
            await database.run(
                chat_budgets.check, self._context.asked_in, self._context.spec.id, amount
            )
        except chat_budgets.BudgetReached as error:
            raise unpaid(str(error)) from None

    async def _read_held(self) -> None:
        if time.monotonic() - self._held_at < min(HELD_SECONDS, settings.UAMP_HOLD_SECONDS):
            return
        await self._read_held_now()

    async def _read_held_now(self) -> None:
        self._held = await database.run(
            reservations.held_for, self._context.response_id, self._asset
        )
        self._held_at = time.monotonic()

    async def _take(self, amount: Money) -> bool:
        """Reserve more, if that is possible without asking."""
        if self._payment.source is None:
            return False
        try:
            hold = await self._reserve(amount)
        except reservations.MandateRevoked:
            event = revoked(self._context.response_id, self._context.spec.name, amount)
            await self._send_to_payer(event)
            return False
        except chat_budgets.BudgetReached as error:
            raise unpaid(str(error)) from None
        except CredentialBudgetReached as error:
            if self._payment.payer_id != self._context.user_id:
                # No one else can help it by paying.
                raise unpaid(str(error)) from None
            return False
        except reservations.REFUSALS:
            return False
        if self._holds == 1 and self._held == hold.amount:
            await self._accept(hold.hold_id, hold.available)
        return True

    async def _reserve(self, amount: Money) -> HoldOutcome:
        self._holds += 1
        self._payment, hold = await database.run(
            reservations.reserve_more,
            self._payment,
            key=f"hold:{self._context.response_id}:{self._context.fence}:{self._holds}",
            amount=amount,
            response_id=self._context.response_id,
            held=self._held,
        )
        self._held += hold.amount
        return hold

    async def _ask(self, amount: Money, action: str) -> None:
        """Ask the payer under the current rule, and wait for a decision or the deadline."""
        await self._choose_payer()
        self._requests += 1
        row, future = await self._write_request(amount, action)
        wait: Wait = ("payment", row.pk)
        self._is_due = True
        try:
            await self._send_refusal()
            await self._send_to_payer(required(row, self._context.spec.name))
            await self._port.send_to_others(await database.run(waiting_for, row), row.payer_id)
            self.settle(await database.run(requests.decided, [row.pk]))
            with self._port.clock.stopped():
                row = await future
        finally:
            self._wait = None
            self._port.row.end_wait(wait)
        if row.status != PaymentState.PAID:
            raise payment_is_late()
        await self._take_payment(row)

    async def _choose_payer(self) -> None:
        context, before = self._context, self._payment
        self._payment = await database.run(payers.current_payment, before)
        if self._payment.payer_id is None and context.user_id is not None:
            # The pool of the chat is used up; the asker may pay the rest.
            self._payment = replace(self._payment, source=None, payer_id=context.user_id)
        if before.is_sponsored or self._payment.payer_id != before.payer_id:
            # The previous payer's balance must not be shown to another.
            self._is_payers_balance = False
        if self._payment.is_sponsored:
            # The sponsor's budget is used up; the asker may pay the rest.
            self._payment = replace(self._payment, source=None, is_sponsored=False)

    async def _write_request(
        self, amount: Money, action: str
    ) -> tuple[PaymentRequest, asyncio.Future[PaymentRequest]]:
        """Write the request as a row for the response to wait on."""
        context = self._context
        future: asyncio.Future[PaymentRequest] = asyncio.get_running_loop().create_future()
        async with self._port.row.begin_wait() as waits:
            row = await database.run(
                requests.ask,
                context.response_id,
                fence=context.fence,
                number=self._requests,
                amount=amount,
                payer_id=self._payment.payer_id,
                action=action,
            )
            if row is None:
                raise takeover_error()
            self._wait = (row.pk, future)
            waits.add(("payment", row.pk))
        return row, future

    async def _take_payment(self, row: PaymentRequest) -> None:
        """Resume the answer after a payment."""
        context = self._context
        self._is_due = False
        self._is_payers_balance = True
        self._held += Money(row.amount, row.asset)
        if row.token_id:
            self._payment = await database.run(requests.paid_with_token, self._payment, row)
        await self._port.row.resume()
        await self._port.send_to_others(payment_taken(context.response_id), row.payer_id)
        balance = await database.run(reservations.payer_balance, context.response_id)
        await self._accept(row.hold_id, balance)

    async def _send_refusal(self) -> None:
        """Send, once, why the asker's token does not cover the requested payment."""
        context, refused = self._context, self._context.payment_refused
        if (
            refused is not None
            and self._payment.payer_id == context.user_id
            and self._requests == 1
        ):
            await self._send_to_payer(changed(refused, response_id=context.response_id))

    async def _accept(self, payment_id: str, balance: Money | None) -> None:
        if not log_fields.current().payment_id:
            log_fields.begin(payment_id=payment_id)
        await self._send_to_payer(accepted(self._context.response_id, payment_id, balance))

    async def close(self, cost: Money, balance: Money | None) -> None:
        """Send the payer their remaining balance after the end of the answer (UAMP §3.3).

        `balance` is None if the write of the end was retried. People who were asked to pay for
        delegated work do not receive its end, so they get an event that nothing is due.
        """
        if self._is_due and self._context.parent is not None:
            await self._send_to_payer(withdrawn(self._context.response_id))
        if not self._is_payers_balance:
            return
        if balance is None:
            balance = await database.run(reservations.payer_balance, self._context.response_id)
        if balance is not None:
            source = self._payment.source
            ends_at = None if source is None else source.expires_at
            event = balance_event(self._context.response_id, balance, cost, ends_at=ends_at)
            await self._send_to_payer(event)

    def settle(self, rows: list[PaymentRequest]) -> None:
        """Accept requests that are paid or expired."""
        for row in rows:
            if self._wait is not None and self._wait[0] == row.pk and not self._wait[1].done():
                self._wait[1].set_result(row)

    async def _send_to_payer(self, event: ev.Event) -> None:
        """Send an event to the payer; a sponsor's balance is not disclosed."""
        if not self._payment.is_sponsored:
            await self._port.send_to_payer(event, self._payment.payer_id)
