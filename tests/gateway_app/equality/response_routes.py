"""Routes of OpenAI's Responses API: whole, streamed, and in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.client import wait_until
from tests.gateway_app.equality.http_routes import added
from tests.gateway_app.equality.questions import (
    PARAMETERS,
    RESULT,
    TOOL,
    Place,
    Question,
    Shown,
    data_of,
    left,
    post,
    wait_for_text,
)

if TYPE_CHECKING:
    import httpx

Answered = dict[str, Any]


def responses(place: Place, question: Question, *, stream: bool = False) -> Shown:
    """Ask; the result of a tool comes in a request that goes on from the first answer."""
    path = f"/agents/{question.agent}/responses"
    body: dict[str, Any] = {"input": question.text, "stream": stream}
    if question.has_tool:
        body["tools"] = [{"type": "function", "name": TOOL, "parameters": PARAMETERS}]
    headers = question.paying
    if question.stop_after:
        return left(place, path, body, question, headers)
    answered = _answered(post(place, path, body, headers))
    tokens = _tokens(answered)
    while calls := [item for item in answered["output"] if item["type"] == "function_call"]:
        output = {"type": "function_call_output", "output": RESULT}
        body["input"] = [{**output, "call_id": call["call_id"]} for call in calls]
        body["previous_response_id"] = answered["id"]
        answered = _answered(post(place, path, body, headers))
        tokens = added(tokens, _tokens(answered))
    return Shown(text=_text(answered), tokens=tokens)


def streamed_responses(place: Place, question: Question) -> Shown:
    """Ask for a stream of events."""
    return responses(place, question, stream=True)


def background_responses(place: Place, question: Question) -> Shown:
    """Ask in the background, and read the response until it has ended."""
    path = f"/agents/{question.agent}/responses"
    body = {"input": question.text, "background": True}
    answered: Answered = post(place, path, body, question.paying).json()
    its_path = f"{path}/{answered['id']}"
    if question.stop_after:
        wait_for_text(question.stop_after)
        post(place, f"{its_path}/cancel", {}, question.headers)

    def read_response() -> Answered:
        stored: Answered = place.web.get(its_path, headers=dict(question.headers)).json()
        return stored

    wait_until(lambda: read_response()["status"] not in {"queued", "in_progress"})
    answered = read_response()
    return Shown(text=_text(answered), tokens=_tokens(answered))


def _answered(answer: httpx.Response) -> Answered:
    """Return the response of a body, or of the last event of a stream."""
    if answer.headers["Content-Type"].startswith("text/event-stream"):
        ended: Answered = data_of(answer)[-1]["response"]
        return ended
    response: Answered = answer.json()
    return response


def _text(answered: Answered) -> str:
    parts = [part for item in answered["output"] for part in item.get("content", ())]
    return "".join(part["text"] for part in parts)


def _tokens(answered: Answered) -> tuple[int, int, int]:
    used = answered["usage"]
    return used["input_tokens"], used["output_tokens"], used["total_tokens"]
