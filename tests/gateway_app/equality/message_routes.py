"""Routes of Anthropic's Messages API: whole and streamed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.gateway_app.anthropic.requests import frames_of, message_of
from tests.gateway_app.equality.http_routes import added
from tests.gateway_app.equality.questions import (
    PARAMETERS,
    RESULT,
    TOOL,
    Place,
    Question,
    Shown,
    left,
    post,
)

if TYPE_CHECKING:
    import httpx


def messages(place: Place, question: Question, *, stream: bool = False) -> Shown:
    """Ask with the whole conversation; a result of a tool comes in the next request."""
    path = f"/agents/{question.agent}/v1/messages"
    history: list[Any] = [{"role": "user", "content": question.text}]
    body: dict[str, Any] = {
        "model": "any",
        "max_tokens": 2**31 - 1,
        "messages": history,
        "stream": stream,
    }
    if question.has_tool:
        body["tools"] = [{"name": TOOL, "description": "Find", "input_schema": PARAMETERS}]
    headers = question.paying
    if question.stop_after:
        return left(place, path, body, question, headers)
    message = _answered(post(place, path, body, headers))
    tokens = _tokens(message)
    while calls := [block for block in message["content"] if block["type"] == "tool_use"]:
        results = [
            {"type": "tool_result", "tool_use_id": call["id"], "content": RESULT} for call in calls
        ]
        history += [
            {"role": "assistant", "content": message["content"]},
            {"role": "user", "content": results},
        ]
        message = _answered(post(place, path, body, headers))
        tokens = added(tokens, _tokens(message))
    text = "".join(block["text"] for block in message["content"])
    return Shown(text=text, tokens=tokens)


def streamed_messages(place: Place, question: Question) -> Shown:
    """Ask for a stream of events."""
    return messages(place, question, stream=True)


def _answered(answer: httpx.Response) -> dict[str, Any]:
    if answer.headers["Content-Type"].startswith("text/event-stream"):
        return message_of(frames_of(answer))
    message: dict[str, Any] = answer.json()
    return message


def _tokens(message: dict[str, Any]) -> tuple[int, int, int]:
    used = message["usage"]
    input_tokens, output_tokens = used["input_tokens"], used["output_tokens"]
    return input_tokens, output_tokens, input_tokens + output_tokens
