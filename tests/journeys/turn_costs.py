"""The cost of a generated turn, calculated without the product, and who paid for it."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Final

from django.db.models import Sum

from payments_app import services as ledger
from payments_app.models import Account, Entry, Hold, PaymentToken
from sessions_app.models import PaymentRequest, Response
from tests.journeys.paid_turns import Played, Turn, again, tasks

QUARTERS: Final = 4
"""The weight of a non-ASCII character in quarters of a token; ASCII characters weigh one."""
CALL_TOKENS: Final = 50
"""More than the name and arguments of a call of the tool."""


def wrong_with(played: Played) -> list[str]:
    """Return the errors in a turn's payments: its payer agreed to pay for delivered work."""
    return again(partial(_wrong_with, played))


def _wrong_with(played: Played) -> list[str]:
    turn, wrong = played.turn, []
    responses = list(Response.objects.filter(agent=played.agent))
    demands = [
        frame["requirements"]["amount"]
        for frame in played.frames
        if frame["type"] == "payment.required"
    ]
    wrong += [f"a demand of {amount}" for amount in demands if not Fraction(amount) > 0]
    is_sane = turn.max_tokens is None or (
        type(turn.max_tokens) is int and 1 <= turn.max_tokens <= 1_000_000
    )
    if is_sane == played.refused:
        wrong.append(f"max_tokens {turn.max_tokens!r} refused: {played.refused}")
    if played.refused:
        wrong += ["a refused turn left a response"] if responses else []
        wrong += [f"refused with {_code(played)}"] if _code(played) not in _TYPED else []
    for response in responses:
        wrong += _wrong_with_response(played, response)
    if Hold.objects.filter(agent_id=played.agent.pk, state="active").exists():
        wrong.append("something is still held")
    return wrong


_TYPED: Final = {"invalid_event", "invalid_number"}


def _code(played: Played) -> str:
    code: str = played.frames[-1]["error"]["code"]
    return code


def _wrong_with_response(played: Played, response: Response) -> list[str]:
    paid = _paid_by(response.pk)
    charged = sum(paid.values())
    low, high = _due(played.turn, response)
    wrong = []
    if charged < low:
        wrong.append(f"{response.status}: {low} due, {charged} paid, by {paid}")
    if charged > high:
        wrong.append(f"{response.status}: at most {high} due, {charged} paid, by {paid}")
    agreed = _who_agreed(played, response)
    wrong += [f"{payer} paid {amount}" for payer, amount in paid.items() if payer not in agreed]
    return wrong


def _due(turn: Turn, response: Response) -> tuple[int, int]:
    """Return the least and the most that an answer must cost, in smallest units.

    If it was stopped, its output is known, but not whether the provider's count arrived first.
    """
    input_tokens, output_tokens = turn.billed
    quarters = sum(1 if letter.isascii() else 4 for letter in response.text)
    # Usage that a provider does not report is estimated.
    output_tokens = output_tokens or -(-quarters // QUARTERS)
    of_output = turn.per_answer + _per_1k(output_tokens, turn.per_output)
    total = of_output + _per_1k(input_tokens or 2_000, turn.per_input)
    if response.status == "completed":
        return of_output + _per_1k(input_tokens or 1, turn.per_input), total
    of_tool = (turn.tool_price or 0) if tasks[response.agent.name].begun.is_set() else 0
    if turn.tool_price is not None:
        # The call is not counted either.
        total += of_tool + _per_1k(CALL_TOKENS, turn.per_output)
    if response.status != "cancelled" or not quarters:
        # The input of an inference that was sent is estimated if its step is cut off.
        return 0, max(total, turn.per_answer + _per_1k(2_000, turn.per_input))
    delivered_tokens = -(-quarters // QUARTERS)
    answer = turn.per_answer
    if turn.expected_tokens is not None:
        part = min(delivered_tokens, output_tokens, turn.expected_tokens)
        answer = answer * part // turn.expected_tokens - 1
    counted = min(
        _per_1k(delivered_tokens, turn.per_output), _per_1k(output_tokens, turn.per_output)
    )
    if turn.stop_after is not None and turn.stop_after <= len(turn.pieces):
        # It was stopped before its provider reported usage.
        counted = _per_1k(delivered_tokens, turn.per_output)
    # The question's tokens are estimated in a step that is cut off.
    estimated = (
        turn.per_answer
        + _per_1k(delivered_tokens, turn.per_output)
        + _per_1k(2_000, turn.per_input)
    )
    return answer + counted + of_tool, max(total, estimated)


def _per_1k(tokens: int, price: int) -> int:
    return round(Fraction(tokens * price, 1000))


def _paid_by(response_id: str) -> dict[str, int]:
    """Return the amounts paid for a response, by the person behind each account."""
    rows = (
        Entry.objects.filter(transfer__response_id=response_id, amount__lt=0)
        .values("account_id")
        .annotate(total=Sum("amount"))
    )
    return {_person_behind(row["account_id"]): -row["total"] for row in rows}


def _person_behind(account_id: int) -> str:
    account = Account.objects.get(pk=account_id)
    token = PaymentToken.objects.filter(account_id=account_id).first()
    user = token.owner if token else account.owner
    return account.code if user is None else f"{user.username}{' by token' if token else ''}"


def _who_agreed(played: Played, response: Response) -> set[str]:
    turn, asker, owner = played.turn, played.asker.user.username, played.owner.user.username
    agreed = {f"{asker} by token"} if turn.consent == "token" else set()
    if PaymentRequest.objects.filter(response=response, status="paid").exists():
        agreed.add(asker)
    if turn.consent == "approval":
        agreed.add(asker)
    if turn.consent == "sponsor" or (turn.consent == "owner" and turn.allowed % 2):
        agreed.add(owner)
    return agreed


def books_are_sound() -> bool:
    """Return whether the ledger balances."""
    return ledger.audit().clean
