"""The state tables, walked cell by cell."""

from collections.abc import Mapping
from typing import Any

import pytest

from uamp import (
    RESPONSE_TRANSITIONS,
    SESSION_TRANSITIONS,
    LocalProtocolError,
    ResponseState,
    ResponseTrigger,
    SessionState,
    SessionTrigger,
    advance,
    moves,
    unfinished,
)
from uamp.state import TERMINAL


@pytest.mark.parametrize("state", SessionState)
@pytest.mark.parametrize("trigger", SessionTrigger)
def test_a_session_moves_only_by_its_table(state: SessionState, trigger: SessionTrigger) -> None:
    row = SESSION_TRANSITIONS[state]
    if trigger in row:
        assert advance(SESSION_TRANSITIONS, state, trigger) is row[trigger]
    else:
        with pytest.raises(LocalProtocolError, match=f"no transition from {state} by {trigger}"):
            advance(SESSION_TRANSITIONS, state, trigger)


@pytest.mark.parametrize("state", ResponseState)
@pytest.mark.parametrize("trigger", ResponseTrigger)
def test_a_response_moves_only_by_its_table(state: ResponseState, trigger: ResponseTrigger) -> None:
    row = RESPONSE_TRANSITIONS[state]
    if trigger in row:
        assert advance(RESPONSE_TRANSITIONS, state, trigger) is row[trigger]
    else:
        with pytest.raises(LocalProtocolError):
            advance(RESPONSE_TRANSITIONS, state, trigger)


def test_terminal_states_are_the_three_ends() -> None:
    assert {"completed", "cancelled", "failed"} == TERMINAL


def test_every_response_can_end_in_every_way_that_its_state_allows() -> None:
    for state, row in RESPONSE_TRANSITIONS.items():
        if state not in TERMINAL:
            assert {ResponseState.CANCELLED, ResponseState.FAILED} <= set(row.values())
    completing = {s for s, row in RESPONSE_TRANSITIONS.items() if "completed" in row.values()}
    assert completing == {ResponseState.IN_PROGRESS}


@pytest.mark.parametrize("table", [SESSION_TRANSITIONS, RESPONSE_TRANSITIONS])
def test_every_state_is_reached_from_the_first(table: Mapping[Any, Mapping[Any, Any]]) -> None:
    first = next(iter(table))
    reached, pending = {first}, [first]
    while pending:
        for after in table[pending.pop()].values():
            if after not in reached:
                reached.add(after)
                pending.append(after)
    assert reached == set(table)


@pytest.mark.parametrize("table", [SESSION_TRANSITIONS, RESPONSE_TRANSITIONS])
def test_a_trigger_leads_to_one_state(table: Mapping[Any, Mapping[Any, Any]]) -> None:
    triggers = {trigger for row in table.values() for trigger in row}
    for trigger in triggers:
        cells = moves(table, trigger)
        assert cells == {s: advance(table, s, trigger) for s in table if trigger in table[s]}
        assert len(set(cells.values())) == 1


def test_what_is_unfinished_can_still_move() -> None:
    assert unfinished(SESSION_TRANSITIONS) == ("idle", "active")
    assert unfinished(RESPONSE_TRANSITIONS) == ("queued", "in_progress", "waiting")
