"""The charge is the price of the delivery, over drawn prices, media and endings.

`DELIVERY_EXAMPLES` is the number of answers that are drawn; several run at once. A few suffice
beside the tables of test_delivered_is_paid.py and test_media_reservations.py; `make money-property`
draws 10,000.
"""

from __future__ import annotations

import os
import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest
from django.db import connections
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from agents_app.providers import scripts
from payments_app import services as ledger
from sessions_app.billing import unfinished
from sessions_app.billing.meter import Meter
from sessions_app.response.end import writes
from sessions_app.response.payment_guard import PaymentGuard
from tests.journeys.paid_turns import again
from tests.sessions_app.billing.delivered_worth import wrong_with
from tests.sessions_app.billing.drawn_answers import (
    SCRIPT,
    UNIT,
    WORK,
    Answer,
    answers,
    deliver,
    play,
)
from tests.threads import thread_pool

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import ThreadPoolExecutor

    from pytest_django import Settings

    from agents_app.pricing import Pricing
    from sessions_app.billing.usage import Bill
    from tests.live_server import Dial

EXAMPLES = int(os.environ.get("DELIVERY_EXAMPLES", "6"))
# Answers mostly wait: for time-outs, for clients that stay silent, for the next sweep.
AT_ONCE: Final = 12
# The parts of a long run, which workers share.
PARTS: Final = 4 if EXAMPLES > 100 else 1

# The lines of `wrong_with` about what was delivered and not paid.
_UNPAID: Final = re.compile(r" due, \d+ paid$|: no payment was demanded")


@pytest.fixture
def unhurried(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let one person ask as often as a property does, and find a dead process soon."""
    settings.UAMP_RESPONSES_PER_MINUTE = 10**6
    settings.UAMP_SESSIONS_PER_MINUTE = 10**6
    settings.UAMP_REQUESTS_PER_MINUTE = 10**6
    settings.UAMP_EVENTS_PER_MINUTE = 10**6
    settings.UAMP_SWEEP_SECONDS = 0.3
    settings.UAMP_FLUSH_MS = 50
    settings.UAMP_SERVER_TOOLS = [*settings.UAMP_SERVER_TOOLS, WORK]
    monkeypatch.setitem(scripts.SCRIPTS, SCRIPT, deliver)


def _usual(**fields: Any) -> Answer:
    usual: dict[str, Any] = {
        "per_answer": UNIT, "per_input": UNIT, "per_output": UNIT, "per_sound": 2 * UNIT,
        "per_call": UNIT // 2, "expected_tokens": None, "medium": "audio",
        "pieces": ((False, 40), (True, 20)), "later": ((False, 30),), "counted": (700, 20),
        "call": "server", "ending": "completed", "ends_in": 2, "max_tokens": None,
    }  # fmt: skip
    return Answer(**usual | fields)


ENDINGS = [
    _usual(),
    _usual(ending="error"),
    _usual(ending="time-out", call="client"),
    _usual(ending="cancel", expected_tokens=100),
    _usual(ending="silent client", call="client"),
    _usual(ending="killed", ends_in=1),
    _usual(ending="killed", ends_in=1, pieces=()),
    _usual(ending="killed"),
    _usual(ending="killed", call="client"),
    _usual(ending="top-up"),
    _usual(ending="top-up in a text", per_input=0, pieces=((False, 40), (True, 40), (False, 60)),
           max_tokens=15),
    _usual(max_tokens=5),
    _usual(ending="error", ends_in=1, pieces=(), medium="file"),
]  # fmt: skip


@pytest.mark.parametrize(
    "part",
    [pytest.param(part, marks=[pytest.mark.long] if PARTS > 1 else []) for part in range(PARTS)],
)
@pytest.mark.usefixtures("unhurried")
@pytest.mark.timeout(max(300, EXAMPLES * 10))
def test_what_is_charged_is_the_price_of_what_was_delivered(dial: Dial, part: int) -> None:
    examples = len(range(part, EXAMPLES, PARTS))
    with thread_pool(AT_ONCE) as pool:
        _all_right(pool, dial, ENDINGS)

        @hypothesis_settings(
            max_examples=-(-examples // AT_ONCE),
            deadline=None,
            database=None,
            # To make an example smaller takes longer than to read it.
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(st.lists(answers, min_size=AT_ONCE, max_size=AT_ONCE))
        def holds(drawn: list[Answer]) -> None:
            _all_right(pool, dial, drawn)

        holds()
    assert again(ledger.audit).clean


def _deliver_unpaid(monkeypatch: pytest.MonkeyPatch) -> None:
    async def cover(_guard: PaymentGuard, _writes: int) -> None:
        """Show any text."""

    monkeypatch.setattr(PaymentGuard, "_cover", cover)


def _forgive_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    def charge(whole: Bill, pricing: Pricing, _policy: str, **about: Any) -> Bill:
        return unfinished.failed_charge(whole, pricing, "none", **about)

    monkeypatch.setattr(writes, "failed_charge", charge)


def _forget_the_step_of_the_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Meter, "uncounted_usage", lambda _meter: None)


def _run_tools_for_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Meter, "has_price", lambda _meter, _name: False)


@pytest.mark.parametrize(
    ("break_it", "endings"),
    [
        (_deliver_unpaid, {"top-up in a text"}),
        (_forgive_failures, {"error", "time-out"}),
        (_forget_the_step_of_the_dead, {"killed"}),
        (_run_tools_for_free, {"completed"}),
    ],
)
@pytest.mark.usefixtures("unhurried")
def test_unpaid_deliveries_are_detected(
    dial: Dial,
    monkeypatch: pytest.MonkeyPatch,
    break_it: Callable[[pytest.MonkeyPatch], None],
    endings: set[str],
) -> None:
    break_it(monkeypatch)
    drawn = [answer for answer in ENDINGS if answer.ending in endings]
    with thread_pool(AT_ONCE) as pool:
        results = zip(drawn, pool.map(partial(_wrong_after, dial), drawn), strict=True)
        noticed = {answer.ending for answer, wrong in results if any(map(_UNPAID.search, wrong))}
    assert noticed == endings


def _all_right(pool: ThreadPoolExecutor, dial: Dial, drawn: list[Answer]) -> None:
    for answer, wrong in zip(drawn, pool.map(partial(_wrong_after, dial), drawn), strict=True):
        assert wrong == [], answer


def _wrong_after(dial: Dial, drawn: Answer) -> list[str]:
    try:
        agent, response = play(drawn, dial)
        return again(partial(wrong_with, drawn, agent, response))
    finally:
        connections.close_all()
