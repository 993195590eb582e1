"""Payments to a remote agent's own server, within the budget of its owner.

The ledger belongs to an app above this one and is set at start-up. Each run has one
`OnwardPayments`. At the end of an inference, the budget is charged with all payments that were
submitted, since the other side may have taken them whatever it says. If the owner trusts it, the
budget is charged with the cost that it states instead, and with no payment that it refused.
"""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple, Protocol

from agents_app.remote import health

CURRENCY = "USD"
OPTION = "pays_per_answer"
TRUST = "trusts_cost"


class OverBudget(Exception):
    """A payment is not allowed; the message explains why, for operators."""


class OnwardTotals(NamedTuple):
    """The onward payments of one answer in CURRENCY; `hold_id` is its first open hold, or ""."""

    hold_id: str
    held: Decimal
    paid: Decimal


class OnwardLedger(Protocol):
    """Counts payments. Synchronous."""

    def reserve(self, agent_id: str, response_id: str, amount: str, currency: str) -> str:
        """Reserve part of the agent's budget and return the id of the hold; raises OverBudget."""

    def settle(self, response_id: str, hold_id: str, amount: str, currency: str) -> None:
        """Charge an amount to the open holds of a response; `hold_id` is the first of them."""

    def payments_of(self, response_id: str) -> OnwardTotals:
        """Return what a response has reserved and paid so far, in any process."""


_ledger: OnwardLedger | None = None


def counted_by(ledger: OnwardLedger) -> None:
    """Set the ledger that counts payments."""
    global _ledger  # noqa: PLW0603 one for the process
    _ledger = ledger


class OnwardPayments:
    """The payments of one run, used by one task at a time."""

    def __init__(self, agent_id: str, response_id: str, options: Mapping[str, Any]) -> None:
        self._agent_id = agent_id
        self._response_id = response_id
        self._remaining = amount_of(options.get(OPTION)) or Decimal(0)
        self._trusts_cost = options.get(TRUST) is True
        self.cost: Decimal | None = None
        """The cost of the answer, as stated by the other side."""
        self._hold_id: str | None = None
        self._submitted: list[Decimal] = []
        self._is_restored = False
        # Submitted by a process that died, for an inference that this one asks for again.
        self._abandoned = Decimal(0)

    async def reserve(self, amount: str, currency: str) -> None:
        """Reserve a payment before it is submitted; raises OverBudget."""
        requested = amount_of(amount)
        if currency != CURRENCY or requested is None:
            raise OverBudget(
                f"it asks for {amount[:40]} {currency[:20]}, which is not a valid amount here"
            )
        if _ledger is None or self._remaining <= 0:
            raise OverBudget("its owner has set no budget for that")
        if not self._is_restored:
            await self.restore()
            self._abandoned, self._submitted = sum(self._submitted, Decimal(0)), []
        if requested > self._remaining:
            raise OverBudget(f"it asks for {amount} {currency}, more than its owner allows")
        hold_id = await health.run_sync(
            _ledger.reserve, self._agent_id, self._response_id, amount, currency
        )
        self._hold_id = self._hold_id or hold_id
        self._remaining -= requested
        self._submitted.append(requested)

    async def restore(self) -> None:
        """Count what earlier runs of this response paid, or reserved and did not settle."""
        self._is_restored = True
        if _ledger is None:
            return
        before = await health.run_sync(_ledger.payments_of, self._response_id)
        self._remaining -= before.paid + before.held
        if before.hold_id:
            self._hold_id = before.hold_id
            self._submitted.append(before.held)

    def withdrawn(self) -> None:
        """Note that the last payment was not submitted after all."""
        if self._submitted:
            self._remaining += self._submitted.pop()

    def refused(self) -> None:
        """Note that the other side says that it rejected the last payment."""
        if self._trusts_cost:
            self.withdrawn()

    async def settle(self, cost: Decimal | None = None) -> None:
        """Charge the budget with what the inference cost, at most what was submitted."""
        hold_id, self._hold_id = self._hold_id, None
        submitted, self._submitted = sum(self._submitted, Decimal(0)), []
        abandoned, self._abandoned = self._abandoned, Decimal(0)
        self.cost = None
        if hold_id is None or _ledger is None:
            return
        price = submitted
        if cost is not None and self._trusts_cost:
            price = min(max(cost, Decimal(0)), submitted)
        self._remaining += submitted - price
        charged = f"{price + abandoned:f}"
        await health.run_sync(_ledger.settle, self._response_id, hold_id, charged, CURRENCY)


def amount_of(value: object) -> Decimal | None:
    """Parse a positive decimal string; return None for anything else."""
    if not isinstance(value, str) or not value.isascii():
        return None
    try:
        amount = Decimal(value)
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and 0 < amount < 10**9 else None


def cost_in(cost: object, currency: object) -> Decimal | None:
    """Return the cost stated by another server, or None if it is not an amount of CURRENCY.

    It is rounded up to the ledger's smallest unit.
    """
    is_number = isinstance(cost, int | float) and not isinstance(cost, bool)
    if not is_number or currency not in {None, CURRENCY}:
        return None
    amount = Decimal(repr(cost))
    if not amount.is_finite() or not 0 <= amount < 10**9:
        return None
    return amount.quantize(Decimal("1e-9"), rounding="ROUND_CEILING")
