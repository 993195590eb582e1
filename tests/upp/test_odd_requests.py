"""Requests with what stores and other programs may put into them."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from upp import AssistantMessage, LLMRequest, TextBlock, ToolCall, UserMessage
from upp.providers import anthropic_request, google_request, openai_request

BODIES: dict[str, Callable[[LLMRequest], dict[str, Any]]] = {
    "anthropic": lambda request: anthropic_request.request_body("m", request, provider="p"),
    "openai": lambda request: openai_request.request_body("m", request, provider="p"),
    "google": lambda request: google_request.request_body(request, provider="p"),
}
CALL = ToolCall(tool_call_id="c1", tool_name="t", arguments={})


def body(of: str, metadata: Any) -> str:
    """Return the body that a provider sends for an answer with this in its metadata."""
    question = UserMessage(content=(TextBlock(text="hi"),))
    answer = AssistantMessage(
        content=(TextBlock(text="words"),), tool_calls=(CALL,), metadata={of: metadata}
    )
    return json.dumps(BODIES[of](LLMRequest(messages=(question, answer))))


@pytest.mark.parametrize("of", BODIES)
@pytest.mark.parametrize(
    "metadata",
    [
        None,
        "junk",
        {"layout": None, "reasoning_field": 5},
        {"layout": "junk"},
        {"layout": ["junk", {"no": "type"}, {"type": "redacted_thinking"}, {"type": 7}]},
    ],
)
def test_what_no_provider_kept_is_passed_over(of: str, metadata: Any) -> None:
    assert body(of, metadata) == body(of, {})


@pytest.mark.parametrize("of", BODIES)
def test_a_parameter_of_none_is_ignored(of: str) -> None:
    params = {"tools": None, "stream_options": None, "generationConfig": None, "thinking": None}
    question = UserMessage(content=(TextBlock(text="hi"),))
    request = LLMRequest(messages=(question,), params=params, structure={"type": "object"})
    request_json = BODIES[of](request)

    assert not request_json["tools"]
    assert request_json["stream_options"] in (None, {"include_usage": True})
