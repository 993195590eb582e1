"""A few points of the kill matrix on each database; the program has as many as one wants."""

from __future__ import annotations

import pytest

from tests.databases import copy_migrated
from tests.faults.kill_matrix import make_plan, run_matrix
from tests.faults.kill_servers import NoServices

POINTS = 6
SEED = 19


def test_a_plan_is_the_same_again() -> None:
    assert make_plan(POINTS, SEED) == make_plan(POINTS, SEED)
    assert make_plan(POINTS, SEED) != make_plan(POINTS, SEED + 1)


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgres", marks=pytest.mark.redis)])
def test_killed_processes_leave_one_end_and_no_doubled_effect(database: str) -> None:
    try:
        outcomes = run_matrix(database, points=POINTS, seed=SEED, copy_migrated=copy_migrated)
    except NoServices as missing:
        pytest.skip(str(missing))
    assert [outcome.wrong for outcome in outcomes] == [[]] * POINTS
    assert all(outcome.killed for outcome in outcomes)
