"""Data that odd servers send, and the resulting turn."""

import asyncio
import json
from typing import Any

from tests.upp.wire_server import STREAM_HEAD, Exchange, serve
from upp import StreamEvent, Tool, Turn, llm
from upp.providers.http.transport import HttpProvider
from upp.providers.openai_compat import OpenAICompatProvider

DONE = b"data: [DONE]\n\n"
CHUNKED = STREAM_HEAD.replace(b"Connection: close", b"Transfer-Encoding: chunked")
TOOL = Tool(name="t", description="t", parameters={"type": "object"}, run=lambda _: 1)


async def received(
    provider: type[HttpProvider], *pieces: bytes, head: bytes = STREAM_HEAD, **options: Any
) -> tuple[Turn, list[StreamEvent]]:
    """Return the turn and the events of a server that sends this, one piece after the other."""

    async def answer(exchange: Exchange) -> None:
        await exchange.send(head)
        for piece in pieces:
            await exchange.send(piece)
            await asyncio.sleep(0)

    async with serve(answer) as wire:
        server = provider(base_url=wire.url, api_key=options.pop("api_key", "k"))
        try:
            model = llm(model=server("m"), max_iterations=0, **options)
            result = model.stream("hi")
            events = [event async for event in result]
            return await result.turn(), events
        finally:
            await server.aclose()


def data(*members: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(member).encode() + b"\n\n" for member in members)


def delta(**members: Any) -> dict[str, Any]:
    return {"choices": [{"delta": members}]}


async def completion(*pieces: bytes, **options: Any) -> tuple[Turn, list[StreamEvent]]:
    return await received(OpenAICompatProvider, *pieces, **options)


def events(*members: dict[str, Any]) -> bytes:
    return b"".join(b"event: x\n" + data(member) for member in members)
