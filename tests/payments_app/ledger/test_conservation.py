"""No operation, in any order, makes or loses money; and a ledger that does is found out."""

from __future__ import annotations

import pytest
from django.db import DatabaseError
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from payments_app.ledger.outcomes import LedgerError
from tests.payments_app.ledger.conservation import Conservation
from tests.payments_app.ledger.mutants import MUTANTS, applied

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(300)]

CALM = settings(
    deadline=None,
    database=None,
    max_examples=25,
    stateful_step_count=30,
    suppress_health_check=list(HealthCheck),
)
# A mutant has to be found, not explained: there is nothing to shrink.
HUNT = settings(CALM, max_examples=200, phases=[Phase.generate], derandomize=True)


def test_money_is_conserved() -> None:
    run_state_machine_as_test(Conservation, settings=CALM)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "name",
    # Three show that the machine finds faults; each of the others takes as long.
    [
        pytest.param(name, marks=[] if place < 3 else pytest.mark.long)
        for place, name in enumerate(MUTANTS)
    ],
)
def test_the_machine_finds_a_ledger_that(name: str) -> None:
    with (
        applied(MUTANTS[name]),
        pytest.raises((AssertionError, LedgerError, DatabaseError, ExceptionGroup)),
    ):
        run_state_machine_as_test(Conservation, settings=HUNT)


def test_a_mutant_leaves_no_trace() -> None:
    for mutant in MUTANTS.values():
        before = dict(vars(mutant.module))
        with applied(mutant):
            assert dict(vars(mutant.module)) != before
        assert dict(vars(mutant.module)) == before
