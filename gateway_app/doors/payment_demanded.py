"""Raised where a turn must be paid for before it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django.http import HttpResponse


class PaymentDemanded(Exception):
    """The turn must be paid for first; `response` is the 402 in the dialect's format."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__("payment required")
        self.response = response
