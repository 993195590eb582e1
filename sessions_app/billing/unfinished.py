"""Charges for unfinished answers: whatever was delivered is paid (ADR 57)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from payments_app.money import Money
from sessions_app.billing.usage import Bill

if TYPE_CHECKING:
    from agents_app.pricing import Pricing


def failed_charge(
    whole: Bill, pricing: Pricing, policy: str, *, is_delivered: bool, tokens: int
) -> Bill:
    """Return the charge for an answer that failed through no fault of its payer.

    `delivered`: like a stopped answer if any output was delivered, otherwise nothing. `usage`:
    tokens and tools, but not the answer's price. `none` and `full`: as named.
    """
    match policy:
        case "full":
            return replace(whole, unfinished="whole")
        case "usage":
            return without_answer(whole)
        case "delivered" if is_delivered:
            return stopped_charge(whole, pricing, has_begun=True, tokens=tokens)
    nothing = Money.zero(whole.answer.asset)
    return Bill(input=nothing, output=nothing, tools=nothing, answer=nothing, unfinished="none")


def stopped_charge(whole: Bill, pricing: Pricing, *, has_begun: bool, tokens: int) -> Bill:
    """Return the charge for an answer that was stopped or no longer paid for.

    It covers tokens and tools, plus a part of the answer's price as chosen by the agent's owner:
    all of it once output has begun, or the share of the expected tokens written.
    """
    if not has_begun:
        return without_answer(whole)
    if pricing.unfinished == "share" and pricing.expected_tokens is not None:
        expected = pricing.expected_tokens
        share = whole.answer.share(min(tokens, expected), expected)
        return replace(whole, answer=share, unfinished="share")
    return replace(whole, unfinished="whole")


def interrupted_charge(bill: Bill, whole: Bill, *, tokens: int, of: int) -> Bill:
    """Return the charge for an answer that neither its asker nor its payer stopped.

    It includes at most the share of the price that matches the tokens written, out of `of`.
    """
    share = whole.answer.share(min(tokens, of), of)
    return bill if bill.answer <= share else replace(bill, answer=share, unfinished="share")


def without_answer(whole: Bill) -> Bill:
    """Return a bill without the price of an answer."""
    return replace(whole, answer=Money.zero(whole.answer.asset), unfinished="none")
