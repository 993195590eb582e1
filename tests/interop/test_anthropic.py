"""Anthropic's own client, as it is installed from the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.interop.conftest import Run
    from tests.interop.deployments import Deployment

# The first test may have to install its client.
pytestmark = [pytest.mark.timeout(900), pytest.mark.any_database]


@pytest.mark.long
def test_anthropic(run_client: Run, deployment: Deployment) -> None:
    seen = run_client("anthropic", "anthropic_client.py", deployment.account.token)

    assert "echo" in seen["models"]
    assert seen["model"] == "echo"
    assert seen["whole"] == seen["agent"] == seen["bearer"] == seen["paid"] == "Hello there"
    assert seen["header"] is True
    assert {"content_block_start", "thinking", "text", "message_stop"} <= set(
        seen["stream"].pop("kinds")
    )
    assert seen["stream"].pop("tokens") > 0
    assert seen["stream"] == {
        "text": "I thought about it. You asked: Hello there",
        "blocks": ["thinking", "text"],
        "reason": "end_turn",
    }
    assert seen["tools"] == {
        "reason": "tool_use",
        "input": {"query": "Hello there"},
        "answer": "The tool answered: three cats",
    }
    assert seen["count"] >= 3
    assert "Look" in seen["picture"]
    refusals = {
        name: (seen[name]["kind"], seen[name]["status"], seen[name]["type"])
        for name in ("wrong", "missing", "unpaid", "key", "failed")
    }
    assert refusals == {
        "wrong": ("BadRequestError", 400, "invalid_request_error"),
        "missing": ("NotFoundError", 404, "not_found_error"),
        "unpaid": ("PaymentRequiredError", 402, "billing_error"),
        "key": ("AuthenticationError", 401, "authentication_error"),
        "failed": ("InternalServerError", 502, "api_error"),
    }
    assert seen["wrong"]["message"].startswith("top_k: ")
