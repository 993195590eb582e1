"""The official clients of ACP, in Python and TypeScript, over each of its transports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.interop.conftest import Run
    from tests.interop.deployments import Deployment

# The first test may have to install its client.
pytestmark = pytest.mark.timeout(900)

THOUGHT = "I thought about it. You asked: "
LOADED = ["agent_message_chunk", "agent_thought_chunk", "user_message_chunk"]
TRANSPORTS = ["http", "ws"]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_client_in_python(run_client: Run, deployment: Deployment, transport: str) -> None:
    seen = run_client("acp", "acp_client.py", transport, deployment.account.token)

    assert seen["talk"] == {
        "text": f"{THOUGHT}Hello there",
        "stop": "end_turn",
        "kinds": LOADED[:2],
        "listed": True,
        "loaded": LOADED,
        "again": f"{THOUGHT}Hello there{THOUGHT}Again",
    }
    assert seen["cancel"] == "cancelled"
    assert seen["pay"] == {"code": -32402, "stop": "end_turn", "text": "Hello there"}


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_client_in_typescript(run_client: Run, deployment: Deployment, transport: str) -> None:
    seen = run_client("node", "acp_client.mjs", transport, deployment.account.token)

    assert (seen["text"], seen["stop"]) == (f"{THOUGHT}Hello there", "end_turn")
    assert (seen["listed"], seen["loaded"]) == (True, LOADED)
    assert seen["again"] == 2 * f"{THOUGHT}Hello there"
    assert seen["cancelled"] == "cancelled"
    assert (seen["unpaid"], seen["paid"]) == (-32402, ["end_turn", "Hello there"])
