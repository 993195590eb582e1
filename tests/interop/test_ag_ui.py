"""AG-UI: the official client, its types, and a validator of streams, as they are installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gateway_app.ag_ui.test_events import TYPES

if TYPE_CHECKING:
    from tests.interop.conftest import Run
    from tests.interop.deployments import Deployment

# The first test may have to install its client.
pytestmark = pytest.mark.timeout(900)

NUMBER_OF_WORDS = 200


def test_the_client(run_client: Run, deployment: Deployment) -> None:
    seen = run_client("node", "ag_ui_client.mjs", deployment.account.token)

    live, back = seen["state"].pop("ids")
    assert live == back
    shopping = {"items": ["milk", "tea"], "title": "Shopping"}
    assert seen == {
        "talk": {"text": "I thought about it. You asked: Hello there", "thought": 1},
        "tools": {"text": "The tool answered: three cats", "pending": 0},
        "state": {"state": shopping, "back": shopping, "texts": ["milk", "tea"]},
        "pay": {"reason": "payment_required", "same": True, "text": "Hello there", "left": 0},
        "fail": {"code": "provider_error"},
        "leave": {"words": NUMBER_OF_WORDS, "messages": 2},
        "strangers": {"messages": 0, "status": 404},
        "warnings": [],
    }


def test_the_validator_finds_nothing(run_client: Run) -> None:
    seen = run_client("ag-ui", "ag_ui_validator.py")

    assert seen["found"] == []
    assert seen["commands"] == [{"code": 0, "errors": 0, "warnings": 0}] * 3
    assert seen["ends"].count("RUN_FINISHED") == len(seen["ends"]) - 1
    assert {"STATE_SNAPSHOT", "STATE_DELTA", "MESSAGES_SNAPSHOT"} <= set(seen["sent"])
    assert set(seen["types"]) == TYPES
