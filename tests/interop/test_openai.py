"""OpenAI's own client, as it is installed from the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.interop.conftest import Run
    from tests.interop.deployments import Deployment

# The first test may have to install its client.
pytestmark = [pytest.mark.timeout(900), pytest.mark.any_database]


def test_openai(run_client: Run, deployment: Deployment) -> None:
    seen = run_client("openai", "openai_client.py", deployment.account.token)

    assert "echo" in seen["models"]
    assert (seen["model"], seen["agent's models"]) == ("model", ["echo"])
    assert seen["whole"]["choices"][0]["message"]["content"] == "Hello there"
    assert seen["whole"]["object"] == "chat.completion"
    assert seen["agent"] == "Hello there"
    assert seen["stream"] == {"text": "Hello there", "tokens": 4}
    assert seen["helper"]["reason"] == "tool_calls"
    assert seen["helper"]["name"] == "search"
    assert "tool_calls.function.arguments.done" in seen["helper"]["kinds"]
    assert seen["helper"]["answer"] == "The tool answered: three cats"
    assert (seen["missing"]["kind"], seen["missing"]["status"]) == ("NotFoundError", 404)
    assert (seen["wrong"]["kind"], seen["wrong"]["param"]) == ("BadRequestError", "n")
    assert seen["wrong"]["code"] == "unsupported_parameter"
    assert seen["unpaid"]["status"] == 402
    assert seen["unpaid"]["body"]["context"]["accepts"]
    assert (seen["paid"], seen["receipt"]) == ("Hello there", True)
    assert seen["broken"] == "provider_error"


def test_openai_responses(run_client: Run, deployment: Deployment) -> None:
    seen = run_client("openai", "responses_client.py", deployment.account.token)

    assert (seen["whole"], seen["same"], seen["agent"]) == ("Hello there", True, "Hello there")
    assert (seen["stream"], seen["chained"]) == (
        "I thought about it. You asked: Hello there",
        "Again",
    )
    assert "response.reasoning_summary_text.delta" in seen["kinds"]
    assert seen["counted"] >= 3
    tool = seen["tool"]
    assert "response.function_call_arguments.delta" in tool.pop("kinds")
    assert tool == {
        "name": "search",
        "chained": "The tool answered: three cats",
        "whole": "The tool answered: three cats",
        "given": ["message", "function_call", "function_call_output"],
    }
    assert (seen["parsed"], seen["again"], seen["paid"]) == (3, True, "Hello there")
    assert seen["background"] == {
        "text": "Hello there",
        "cancelled": "cancelled",
        "kept": "cancelled",
    }
    assert seen["conversation"] == {
        "kinds": ["message", "message", "message", "reasoning", "message"],
        "topics": [{"topic": "cats"}, {"topic": "dogs"}],
        "gone": ["NotFoundError", 404, "chat_not_found", None],
        **dict.fromkeys(["same", "answer", "in", "found", "left", "deleted"], True),
    }
    assert seen["unpaid"] == ["APIStatusError", 402]
    assert seen["missing"][:3] == ["NotFoundError", 404, "unknown_session"]
    predecessor = ["previous_response_not_found", "previous_response_id"]
    assert seen["foreign"] == ["BadRequestError", 400, *predecessor]
    assert seen["wrong"] == ["BadRequestError", 400, "unsupported_parameter", "tools[0].type"]
    assert seen["failed"] == "server_error"
