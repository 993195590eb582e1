"""The amount that a client may spend without asking: a limit over all answers (UAMP §7.2)."""

from decimal import Decimal, InvalidOperation

from uamp.client.errors import InvalidRequestError
from uamp.events import Payment, PaymentRequired

_BY_BALANCE = "balance"


class SpendingPlan:
    """A limit in one currency, and how much of it has been committed.

    A payment counts in full: an answer that costs less returns nothing to the limit. Raises
    InvalidRequestError for a limit that is not an amount.
    """

    def __init__(self, pay_up_to: str | Decimal | None, currency: str = "USD") -> None:
        self.currency = currency
        self.agreed = Decimal(0)
        self.limit = Decimal(0) if pay_up_to is None else _amount(pay_up_to)

    def covers(self, required: PaymentRequired) -> bool:
        """Return whether the limit has room for a payment."""
        requirements = required.requirements
        if requirements.currency != self.currency:
            return False
        return self.agreed + _amount(requirements.amount) <= self.limit

    def count(self, required: PaymentRequired) -> None:
        """Count a payment that the client agrees to."""
        if required.requirements.currency == self.currency:
            self.agreed += _amount(required.requirements.amount)


def payment_by_balance(required: PaymentRequired) -> Payment | None:
    """Return a payment from the payer's balance; None if the server does not offer that."""
    for scheme in required.requirements.schemes:
        if scheme.scheme == _BY_BALANCE:
            return Payment(
                scheme=scheme.scheme, network=scheme.network, amount=required.requirements.amount
            )
    return None


def _amount(text: str | Decimal) -> Decimal:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0:
        raise InvalidRequestError(
            f"{text!r} is not an amount. Write a decimal number such as 0.50.",
            code="invalid_amount",
        )
    return amount
