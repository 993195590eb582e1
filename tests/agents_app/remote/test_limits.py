"""The token limit that a remote agent is sent."""

from __future__ import annotations

from typing import Any

import pytest

from agents_app.models import Agent
from agents_app.remote.parameters import params_of
from agents_app.selectors import spec_of


@pytest.mark.parametrize(
    ("params", "expected"),
    [({}, 9), ({"max_tokens": None}, 9), ({"max_tokens": 8}, 8), ({"max_tokens": 10}, 9)],
)
def test_the_limit_is_the_lower_of_the_options_and_the_agents(
    params: dict[str, Any], expected: int
) -> None:
    agent = Agent(
        name="far",
        kind="remote",
        protocol="uamp",
        max_output_tokens=9,
        options={"params": params},
    )
    assert params_of(spec_of(agent), {})["max_tokens"] == expected
    assert params_of(spec_of(agent), {"max_tokens": 7})["max_tokens"] == 7
