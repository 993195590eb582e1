"""Why a payment was not taken."""

from __future__ import annotations


class PaymentNotTaken(Exception):
    """A payment that was refused; `code` is one of UAMP §7.2, the message is for a person."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
