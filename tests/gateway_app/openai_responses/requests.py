"""Requests of the Responses API, and how their answers are read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.gateway_app.completions.requests import PIXEL

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Person

SEARCH = {
    "type": "function",
    "name": "search",
    "parameters": {"type": "object", "properties": {}},
}
PICTURE = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}


def respond(
    web: httpx.Client, agent: str, body: dict[str, Any], who: Person | None = None, **headers: str
) -> httpx.Response:
    """Send a request to an agent, as a person or a visitor; its input is a greeting by default."""
    all_headers = {**(who.headers if who else {}), **headers}
    request = {"input": "Hello there", **body}
    return web.post(f"/agents/{agent}/responses", json=request, headers=all_headers)


def read(
    web: httpx.Client, path: str, who: Person | None = None, **query: str | int
) -> httpx.Response:
    """Read a response, or what is below it."""
    return web.get(f"/v1/responses/{path}", headers=who.headers if who else {}, params=query)


def text_of(response: dict[str, Any]) -> str:
    """Return the text of a response object."""
    parts = [
        part for item in response["output"] if item["type"] == "message" for part in item["content"]
    ]
    return "".join(part["text"] for part in parts)


def events_of(answer: httpx.Response) -> list[dict[str, Any]]:
    """Return the events of a stream, which are named as they say and come in order."""
    frames = [frame for frame in answer.text.split("\n\n") if frame and not frame.startswith(":")]
    events: list[dict[str, Any]] = []
    for frame in frames:
        name, _, data = frame.partition("\n")
        events.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {events[-1]['type']}"
    numbers = [event["sequence_number"] for event in events]
    assert numbers == sorted(set(numbers))
    return events


def text_of_deltas(events: list[dict[str, Any]], kind: str = "response.output_text.delta") -> str:
    """Return the text that deltas add up to."""
    return "".join(event["delta"] for event in events if event["type"] == kind)


def result(call: dict[str, Any], output: str = "three cats") -> dict[str, Any]:
    """Return the result of a call."""
    return {"type": "function_call_output", "call_id": call["call_id"], "output": output}
