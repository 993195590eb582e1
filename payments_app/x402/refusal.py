"""The refusal of a payment, with its reason."""

from __future__ import annotations


class PaymentNotTaken(Exception):
    """The payment was refused; the message is for a person.

    `code` is one of UAMP §7.2, or `payment_used` for a payment on a chain that was already taken.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
