"""A person who asks often waits behind their own requests."""

from __future__ import annotations

import pytest

from agents_app.workers import fair_turns
from agents_app.workers.fair_turns import FairTurns, TooManyWait


def test_askers_take_turns_and_have_one_thing_each() -> None:
    turns = FairTurns([1, 2])
    greedy = [turns.ask("greedy") for _ in range(3)]
    assert [turn.done() for turn in greedy] == [True, False, False]
    other = turns.ask("other")
    assert other.done()
    third, fourth = turns.ask("third"), turns.ask("third")
    turns.give_back("greedy", greedy[0].result())
    # Greedy asked before, and has their turn; then it is the third one's, not greedy's again.
    assert (greedy[1].done(), third.done()) == (True, False)
    turns.give_back("greedy", greedy[1].result())
    assert (greedy[2].done(), third.done()) == (False, True)
    turns.give_back("other", other.result())
    assert (greedy[2].done(), fourth.done()) == (True, False)
    turns.give_back("third", third.result())
    turns.give_back("greedy", greedy[2].result())
    turns.give_back("third", fourth.result())
    assert sorted(turns.free) == [1, 2]


def test_giving_up_leaves_nothing_behind() -> None:
    turns = FairTurns([1])
    first, late, last = turns.ask("a"), turns.ask("b"), turns.ask("c")
    turns.give_up("b", late)
    turns.give_back("a", first.result())
    assert last.result() == 1
    # What came while they gave up is given back.
    turns.give_up("c", last)
    assert turns.free == [1]
    assert turns.ask("b").result() == 1


def test_one_asker_has_a_bounded_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_turns, "MAX_WAITING", 2)
    turns = FairTurns([1])
    for _ in range(3):
        turns.ask("a")
    with pytest.raises(TooManyWait):
        turns.ask("a")
    turns.ask("b")
