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


def body(of: str, kept: Any) -> str:
    """Return what a provider sends of an answer with this in its metadata."""
    asked = UserMessage(content=(TextBlock(text="hi"),))
    said = AssistantMessage(
        content=(TextBlock(text="words"),), tool_calls=(CALL,), metadata={of: kept}
    )
    return json.dumps(BODIES[of](LLMRequest(messages=(asked, said))))


@pytest.mark.parametrize("of", BODIES)
@pytest.mark.parametrize(
    "kept",
    [
        None,
        "junk",
        {"layout": None, "reasoning_field": 5},
        {"layout": "junk"},
        {"layout": ["junk", {"no": "type"}, {"type": "redacted_thinking"}, {"type": 7}]},
    ],
)
def test_what_no_provider_kept_is_passed_over(of: str, kept: Any) -> None:
    assert body(of, kept) == body(of, {})


@pytest.mark.parametrize("of", BODIES)
def test_a_parameter_of_nothing_is_no_parameter(of: str) -> None:
    params = {"tools": None, "stream_options": None, "generationConfig": None, "thinking": None}
    asked = UserMessage(content=(TextBlock(text="hi"),))
    request = LLMRequest(messages=(asked,), params=params, structure={"type": "object"})
    sent = BODIES[of](request)

    assert not sent["tools"]
    assert sent["stream_options"] in (None, {"include_usage": True})
