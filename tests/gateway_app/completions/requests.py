"""Requests of Chat Completions, and how their answers are read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Person

HELLO = {"messages": [{"role": "user", "content": "Hello there"}]}
SEARCH = {
    "type": "function",
    "function": {"name": "search", "parameters": {"type": "object", "properties": {}}},
}

# A PNG of one pixel, base64.
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQ"
    "DwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
PICTURE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}


def ask(
    web: httpx.Client, agent: str, body: dict[str, Any], who: Person | None = None, **headers: str
) -> httpx.Response:
    """Send a request to an agent, as a person or a visitor; the path is the specification's."""
    all_headers = {**(who.headers if who else {}), **headers}
    return web.post(f"/agents/{agent}/chat/completions", json=body, headers=all_headers)


def chunks_of(answer: httpx.Response) -> list[dict[str, Any]]:
    """Return the chunks of a stream, which ends as OpenAI's does; the signature follows its end."""
    stream, _, signed = answer.text.partition("event: response_signature\n")
    assert not signed or json.loads(signed.removeprefix("data: "))["signature"].count(".") == 2
    lines = [line for line in stream.split("\n\n") if line and not line.startswith(":")]
    frames = [line.removeprefix("data: ") for line in lines]
    assert frames.pop() == "[DONE]"
    return [json.loads(frame) for frame in frames]


def deltas_of(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the deltas of the chunks that have a choice."""
    return [chunk["choices"][0]["delta"] for chunk in chunks if chunk.get("choices")]


def text_of(chunks: list[dict[str, Any]]) -> str:
    """Return the text of a stream."""
    return "".join(delta.get("content") or "" for delta in deltas_of(chunks))
