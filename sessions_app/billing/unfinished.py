"""The amount due for an unfinished answer: what was delivered is paid (ADR 57)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from payments_app.money import Money
from sessions_app.billing.usage import Bill

if TYPE_CHECKING:
    from agents_app.pricing import Pricing


def of_failed(
    whole: Bill, pricing: Pricing, policy: str, *, is_delivered: bool, tokens: int
) -> Bill:
    """Return what is due for an answer that failed by no fault of its payer.

    `delivered`: as for a stopped answer once any output was delivered, and nothing before; `usage`:
    tokens and tools, but not the price of an answer; `none` and `full` say it themselves.
    """
    match policy:
        case "full":
            return replace(whole, unfinished="whole")
        case "usage":
            return without_answer(whole)
        case "delivered" if is_delivered:
            return of_stopped(whole, pricing, has_begun=True, tokens=tokens)
    nothing = Money.zero(whole.answer.asset)
    return Bill(input=nothing, output=nothing, tools=nothing, answer=nothing, unfinished="none")


def of_stopped(whole: Bill, pricing: Pricing, *, has_begun: bool, tokens: int) -> Bill:
    """Return what is due for an answer that was stopped, or was not paid further.

    Tokens and tools, and of the price of an answer what the agent's owner chose: the whole once the
    output has begun, or the share of the expected tokens that were written.
    """
    if not has_begun:
        return without_answer(whole)
    if pricing.unfinished == "share" and pricing.expected_tokens is not None:
        most = pricing.expected_tokens
        share = whole.answer.share(min(tokens, most), most)
        return replace(whole, answer=share, unfinished="share")
    return replace(whole, unfinished="whole")


def without_answer(whole: Bill) -> Bill:
    """Return a bill without the price of an answer."""
    return replace(whole, answer=Money.zero(whole.answer.asset), unfinished="none")
