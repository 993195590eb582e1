"""The value of the output that a generated answer delivered."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from django.db.models import Sum

from payments_app import selectors as ledger_rows
from payments_app import services as ledger
from payments_app.models import Hold
from tests.sessions_app.billing.drawn_answers import (
    MEDIA,
    WORDS,
    Answer,
    counted,
    cut_in,
    is_continued,
    stored,
)

if TYPE_CHECKING:
    from agents_app.models import Agent
    from sessions_app.models import Response


def wrong_with(drawn: Answer, agent: Agent, response: Response) -> list[str]:
    holds = Hold.objects.filter(response_id=response.pk)
    held_amount = holds.aggregate(all=Sum("amount"))["all"] or 0
    charged = ledger_rows.balance(ledger.account_of_agent(agent.pk).id).posted.amount
    due, wrong = _due(drawn, response), []
    if due[0] > held_amount + 2 and drawn.ending != "top-up":
        # There, the vendor counts what is beyond any bound.
        wrong.append(f"{due[0]} delivered, {held_amount} held")
    if drawn.ending == "top-up in a text" and response.status != "cancelled":
        wrong.append(f"{response.status}: no payment was demanded for the text")
    low, high = (min(amount, held_amount) for amount in due)
    if not low - 2 <= charged <= high + 2:
        wrong.append(f"{response.status} {response.error}: {low} to {high} due, {charged} paid")
    if charged > held_amount:
        wrong.append(f"{charged} charged, {held_amount} held")
    if holds.filter(state="active").exists():
        wrong.append("something is still held")
    return wrong


def _due(drawn: Answer, response: Response) -> tuple[int, int]:
    """Return the least and the most that was delivered is worth."""
    cut = None if is_continued(drawn) else cut_in(drawn)
    has_called = drawn.call is not None and cut != 1
    steps = 0 if cut == 1 else 2 if has_called and cut is None else 1
    if drawn.ending == "silent client" and drawn.call == "client":
        steps = 1
    if drawn.ending == "top-up":
        # The first count is beyond what is held: nothing after it is run.
        steps, has_called = 1, False
    input_tokens, output_tokens = counted(drawn)
    cut_chars = sum(chars for _, chars in (drawn.pieces if cut == 1 else drawn.later)) if cut else 0
    if drawn.ending == "top-up in a text":
        cut_chars = stored(response)
    if drawn.ending == "time-out" and cut == 2:
        # On a busy machine the time may be up before the second step says something.
        cut_chars = min(
            cut_chars, max(0, stored(response) - sum(chars for _, chars in drawn.pieces))
        )
    was_sent = cut is not None and (cut_chars or drawn.ending == "cancel")
    estimates = [-(-cut_chars // 4) if was_sent else 0] * 2
    about = _read_by_estimate(drawn, steps) if was_sent else (0, 0)
    calls = [drawn.per_call if has_called and drawn.call == "server" else 0] * 2
    if not cut_chars:
        # A cancel may come before the inference was sent, and before the tool ran.
        about = (0, about[1])
        calls[0] = 0 if drawn.ending == "cancel" else calls[0]
    is_delivered = bool(has_called or cut_chars or (drawn.pieces and cut != 1))
    has_begun = is_delivered or bool(steps)
    if response.status == "failed" and not is_delivered:
        return 0, 0
    amounts = []
    for about_read, wrote, called in zip(about, estimates, calls, strict=True):
        output = steps * output_tokens + wrote
        total = Fraction(
            (steps * input_tokens + about_read) * drawn.per_input + output * drawn.per_output
        )
        with_sound = about_read and cut == 1 and drawn.medium == "audio"
        if with_sound and drawn.per_sound is not None:
            total += MEDIA["audio"][1] * (drawn.per_sound - drawn.per_input)
        amounts.append(total / 1000 + called + _of_answer(drawn, response, output, has_begun))
    return int(min(amounts)), int(max(amounts)) + 1


def _read_by_estimate(drawn: Answer, steps: int) -> tuple[int, int]:
    if steps:
        before = sum(counted(drawn))
        return before, before + WORDS
    medium = MEDIA[drawn.medium][1] if drawn.medium else 0
    return medium, medium + WORDS


def _of_answer(drawn: Answer, response: Response, output: int, has_begun: bool) -> int:  # noqa: FBT001 a fact
    if response.status == "completed":
        return drawn.per_answer
    if not has_begun:
        return 0
    if drawn.expected_tokens is None:
        return drawn.per_answer
    return drawn.per_answer * min(output, drawn.expected_tokens) // drawn.expected_tokens
