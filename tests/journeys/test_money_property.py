"""Delivered work is paid for, or owed by a payer who agreed, for generated turns.

Prices, requests and payers are generated. `MONEY_EXAMPLES` is the number of turns (`make
money-property` generates 10,000). Each mutant disables a guard, and the property has to detect it.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from msgspec.structs import replace

import uamp
from agents_app import sponsorships
from agents_app.models import Agent
from agents_app.providers import scripts
from chat_app.members import payers as chat_payers
from chat_app.members.agreed_prices import prices_in
from chat_app.members.payers import ChatPayer
from chat_app.models import Participant, ParticipantRole
from payments_app.money import Money
from payments_app.spending import budgets
from sessions_app.billing import meter, reservations, unfinished, usage, weights
from sessions_app.response import payment_guard
from sessions_app.response.end import writes
from sessions_app.response.payment_guard import PaymentGuard
from sessions_app.store import orm
from sessions_app.turn import assembly, holds
from tests.journeys.paid_turns import SCRIPT, UNIT, WORK, Turn, drawn, play, turns
from tests.journeys.turn_costs import books_are_sound, wrong_with
from uamp import events
from uamp.codec import frames

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_django import Settings

    from tests.live_server import Dial

# Fewer on PostgreSQL, where the rules of money are the same.
IN_THE_SUITE = "100" if os.environ.get("TEST_DATABASE_URL") else "200"
if os.environ.get("SHORT_RUN"):
    IN_THE_SUITE = "50"
EXAMPLES = int(os.environ.get("MONEY_EXAMPLES", IN_THE_SUITE))


@pytest.fixture
def unhurried(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let one person ask as often as a property does."""
    settings.UAMP_RESPONSES_PER_MINUTE = 10**6
    settings.UAMP_SESSIONS_PER_MINUTE = 10**6
    settings.UAMP_REQUESTS_PER_MINUTE = 10**6
    settings.UAMP_EVENTS_PER_MINUTE = 10**6
    settings.UAMP_SERVER_TOOLS = [*settings.UAMP_SERVER_TOOLS, WORK]
    monkeypatch.setitem(scripts.SCRIPTS, SCRIPT, drawn)


def _turn(**drawn_values: Any) -> Turn:
    usual: dict[str, Any] = {
        "per_answer": UNIT, "per_input": 0, "per_output": UNIT, "expected_tokens": None,
        "pieces": (400, 400), "letter": "x", "billed": (10, 200),
        "max_tokens": None, "in_extensions": False, "stop_after": None,
        "consent": "approval", "allowed": 30 * UNIT + 1, "has": 20 * UNIT, "payments": 4,
    }  # fmt: skip
    return Turn(**usual | drawn_values)


ATTACKS = {
    "negative": _turn(max_tokens=-10_000_000, consent="asked", has=0, payments=0),
    "negative in a session": _turn(max_tokens=-1, in_extensions=True, has=0, payments=0),
    "huge": _turn(max_tokens=10**12),
    "stopped late": _turn(stop_after=2),
    "stopped late, by share": _turn(stop_after=2, expected_tokens=100),
    "a sponsor who did not agree": _turn(consent="unasked_sponsor"),
    "an owner who did not agree": _turn(consent="owner", allowed=30 * UNIT),
    "hidden reasoning": _turn(pieces=(4,), billed=(0, 3_000), consent="asked"),
    "long beyond its tokens": _turn(max_tokens=1, pieces=(900, 900), billed=(10, 450)),
    "stopped late, in Chinese": _turn(stop_after=2, letter="漢", billed=(10, 800)),
    "stopped where nothing was counted": _turn(
        per_answer=3,
        per_input=167,
        per_output=0,
        expected_tokens=1,
        pieces=(1,),
        billed=(3, 0),
        consent="asked",
        allowed=1,
        has=UNIT // 1000,
        payments=1,
    ),
    "stopped in its tool": _turn(tool_price=UNIT),
    "stopped in its tool, by share": _turn(tool_price=UNIT, expected_tokens=100, consent="asked"),
    "nothing was counted": _turn(billed=(0, 0)),
    "no output was counted": _turn(billed=(10, 0)),
    "no input was counted": _turn(per_input=UNIT, billed=(0, 200)),
    "a small budget": _turn(consent="sponsor", allowed=UNIT // 2),
}


def _property(dial: Dial, examples: int) -> None:
    """Generate turns until one is wrong, or `examples` were right."""

    @hypothesis_settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(turns)
    def holds(turn: Turn) -> None:
        played = play(turn, dial)
        assert wrong_with(played) == [], (turn, [f["type"] for f in played.frames])

    holds()
    assert books_are_sound()


@pytest.mark.timeout(max(600, EXAMPLES * 3))
@pytest.mark.usefixtures("unhurried")
def test_work_that_is_delivered_is_paid_by_who_agreed(dial: Dial) -> None:
    for name, turn in ATTACKS.items():
        assert wrong_with(play(turn, dial)) == [], name
    _property(dial, EXAMPLES)


# --- Mutants ---


def _unchecked_numbers(stack: ExitStack) -> None:
    """Let any number through to a reservation without a minimum, as if there were no bounds."""

    def raw(spec: Any, step: Any) -> Money:
        return Money(_raw_total(spec, step), spec.pricing.currency)

    def step_usage(spec: Any, request: Any, *_: Any) -> Any:
        tokens = request.params.get("max_tokens")
        return uamp.UsageStats(input_tokens=0, output_tokens=tokens or 512)

    convert = frames._convert

    def unbounded(frame: dict[str, Any], type_name: str, cls: Any) -> Any:
        options = frame.get("response") or {}
        tokens = options.pop("max_tokens", None)
        event = convert(frame, type_name, cls)
        if tokens is not None and isinstance(event, events.ResponseCreate):
            return replace(event, response=events.ResponseConfig(max_tokens=tokens))
        return event

    _set(stack, frames, "_convert", unbounded)
    _set(stack, assembly, "check_options", lambda *_: None)
    _set(stack, weights, "step_usage", step_usage)
    _set(stack, holds, "reservation", raw)
    _set(stack, holds, "step_usage", step_usage)
    _set(stack, reservations.Reservation, "__post_init__", lambda _self: None)
    for counting in (usage, meter):
        _set(stack, counting, "token_count", lambda tokens: tokens or 0)


def _raw_total(spec: Any, step: Any) -> int:
    per_1k = Money.parse(spec.pricing.output_per_1k).amount
    return int(Money.parse(spec.pricing.per_answer).amount + step.output_tokens * per_1k // 1000)


def _nothing_reserved(stack: ExitStack) -> None:
    async def need(_guard: PaymentGuard, _cost: Money, *, action: str) -> None:
        del action

    _set(stack, holds, "reservation", lambda spec, _step: Money.zero(spec.pricing.currency))
    _set(stack, PaymentGuard, "_need", need)


def _stopping_free(stack: ExitStack) -> None:
    _set(stack, writes, "stopped_charge", lambda bill, *_, **__: unfinished.without_answer(bill))


def _every_owner_sponsors(stack: ExitStack) -> None:
    def owners(agent_ids: Any) -> dict[str, int]:
        rows = Agent.objects.filter(pk__in=agent_ids, owner__isnull=False)
        return dict(rows.values_list("pk", "owner_id"))

    _set(stack, sponsorships, "sponsors_of", owners)
    _set(stack, budgets.BudgetGuard, "allow", lambda *_: None)


def _owner(chat_id: str) -> int | None:
    owners = Participant.objects.filter(chat_id=chat_id, role=ParticipantRole.OWNER)
    return owners.values_list("user_id", flat=True).first()


def _any_owner_pays(stack: ExitStack) -> None:
    payers_of = chat_payers.payers_of

    def chosen(chat_ids: Any) -> dict[str, ChatPayer]:
        return {
            chat_id: ChatPayer("owner", _owner(chat_id), prices_in(chat_id))
            if payer.rule == "asker"
            else payer
            for chat_id, payer in payers_of(chat_ids).items()
        }

    _set(stack, chat_payers, "payers_of", chosen)


def _nothing_settled(stack: ExitStack) -> None:
    _set(stack, orm, "settle_all", lambda _charges: {})


def _counts_ignored(stack: ExitStack) -> None:
    async def nothing(_guard: PaymentGuard) -> None: ...

    _set(stack, PaymentGuard, "counted", nothing)
    _set(stack, PaymentGuard, "complete", nothing)


def _begun_free(stack: ExitStack) -> None:
    _set(stack, meter.Meter, "count_begun", lambda *_: None)


def _uncounted_free(stack: ExitStack) -> None:
    _set(stack, meter.Meter, "_counted", lambda _self, reported: reported)


def _characters_alike(stack: ExitStack) -> None:
    for module, name in ((meter, "weight"), (meter, "max_weight"), (payment_guard, "max_weight")):
        _set(stack, module, name, len)


def _set(stack: ExitStack, owner: Any, name: str, value: Any) -> None:
    stack.enter_context(patch.object(owner, name, value))


MUTANTS: dict[Callable[[ExitStack], None], str] = {
    _begun_free: "stopped in its tool",
    _uncounted_free: "no output was counted",
    _unchecked_numbers: "negative",
    _nothing_reserved: "long beyond its tokens",
    _stopping_free: "stopped late",
    _every_owner_sponsors: "a sponsor who did not agree",
    _any_owner_pays: "an owner who did not agree",
    _nothing_settled: "a small budget",
    _counts_ignored: "hidden reasoning",
    _characters_alike: "stopped late, in Chinese",
}


@pytest.mark.usefixtures("unhurried")
def test_the_property_finds_a_guard_that_is_switched_off(dial: Dial) -> None:
    survived = []
    for mutate, attack in MUTANTS.items():
        assert wrong_with(play(ATTACKS[attack], dial)) == [], attack
        with ExitStack() as stack:
            mutate(stack)
            if not wrong_with(play(ATTACKS[attack], dial)):
                survived.append(mutate.__name__)
    assert survived == []
