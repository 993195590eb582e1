"""Strategies of agents, as their rows name them."""

from typing import Any

import pytest

from agents_app.strategies import make_strategy


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("loop", {}),
        ("react", {}),
        ("react", {"reasoning_prompt": "Think."}),
        ("plan", {}),
        ("plan", {"max_plan_steps": 32, "allow_replan": False}),
    ],
)
def test_a_strategy_is_made_by_its_name(name: str, options: dict[str, Any]) -> None:
    assert make_strategy(name, options, max_steps=3).name == name


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("dream", {}, "There is no strategy named 'dream'."),
        ("loop", {"max_plan_steps": 1}, "unknown field `max_plan_steps`"),
        ("loop", [], "Expected `object`, got `array`"),
        ("react", {"reasoning_prompt": ""}, "length >= 1"),
        ("react", {"max_steps": 1}, "unknown field `max_steps`"),
        ("plan", {"max_plan_steps": 0}, "`int` >= 1"),
        ("plan", {"max_plan_steps": 33}, "`int` <= 32"),
        ("plan", {"allow_replan": "no"}, "Expected `bool`, got `str`"),
    ],
)
def test_what_a_strategy_does_not_take_is_refused(name: str, options: Any, reason: str) -> None:
    with pytest.raises(ValueError, match="strategy") as caught:
        make_strategy(name, options, max_steps=3)
    assert reason in str(caught.value)
