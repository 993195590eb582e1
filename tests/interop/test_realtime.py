"""OpenAI's clients of the Realtime API, in GA and in the beta, and its Agents SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.interop.conftest import Run

# The first test may have to install its client.
pytestmark = pytest.mark.timeout(900)


def test_openai_and_its_agents(run_client: Run) -> None:
    seen = run_client("realtime", "realtime_client.py")

    assert seen["ga"] == {
        "text": "Hello there",
        "status": "completed",
        "tool": 'The tool answered: "three cats"',
        "cancelled": "cancelled",
    }
    assert seen["beta"] == {"text": "Hello there", "status": "completed", "calls": []}
    assert seen["secrets"] == {
        "instructions": "Be brief.",
        "model": "echo",
        "text": "Hello there",
        "beta": "Hello there",
    }
    assert seen["agents"] == "Hello there"
