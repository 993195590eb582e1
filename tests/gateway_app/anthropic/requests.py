"""Requests of Anthropic's Messages API, and how their answers are read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Person

HELLO: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 1024,
    "messages": [{"role": "user", "content": "Hello there"}],
}
SEARCH: dict[str, Any] = {
    "name": "search",
    "description": "Find",
    "input_schema": {"type": "object", "properties": {}},
}
VERSION = {"anthropic-version": "2023-06-01"}


def ask(
    web: httpx.Client, agent: str, body: dict[str, Any], who: Person | None = None, **headers: str
) -> httpx.Response:
    """Send a request to an agent, as a person or a visitor, with the headers of the SDKs."""
    key = {"X-API-Key": who.key} if who else {}
    return web.post(
        f"/agents/{agent}/v1/messages", json=body, headers={**VERSION, **key, **headers}
    )


def frames_of(answer: httpx.Response) -> list[dict[str, Any]]:
    """Return the events of a stream, each of which is named by its type."""
    frames = []
    for part in answer.text.split("\n\n")[:-1]:
        name, data = part.split("\n")
        frames.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {frames[-1]['type']}"
    return frames


_OURS = ("digital_source_type", "signature")


def message_of(frames: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the message that the frames of a stream add up to, as the SDKs add them."""
    message: dict[str, Any] = dict(frames[0]["message"])
    assert frames[0]["type"] == "message_start"
    assert frames[-1] == {"type": "message_stop"}
    arguments: dict[int, str] = {}
    for frame in frames[1:-1]:
        if frame["type"] == "content_block_start":
            assert frame["index"] == len(message["content"])
            message["content"].append(frame["content_block"])
        elif frame["type"] == "content_block_delta":
            block, delta = message["content"][frame["index"]], frame["delta"]
            match delta["type"]:
                case "text_delta":
                    block["text"] += delta["text"]
                case "thinking_delta":
                    block["thinking"] += delta["thinking"]
                case "input_json_delta":
                    text = arguments.get(frame["index"], "") + delta["partial_json"]
                    arguments[frame["index"]] = text
        elif frame["type"] == "content_block_stop":
            if frame["index"] in arguments:
                block = message["content"][frame["index"]]
                block["input"] = json.loads(arguments[frame["index"]])
        elif frame["type"] == "message_delta":
            ours = {name: frame[name] for name in _OURS if name in frame}
            message |= {**frame["delta"], "usage": frame["usage"], **ours}
    return message
