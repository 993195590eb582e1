"""Providers and tool calls with invalid input, for the tests of the runtime."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agents_app.models import Agent, ModelProvider
from chat_app.models import ChatEvent, Message
from sessions_app.models import Response, ToolCall
from tests.client import TERMINAL, Frame, UampClient
from tests.threads import join_threads
from tests.upp.wire_server import STREAM_HEAD, Answer, Exchange, WireServer, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.live_server import Dial


@contextmanager
def provider(answer: Answer) -> Iterator[WireServer]:
    """Run a provider on a thread of its own, and count what it is asked."""
    loop = asyncio.new_event_loop()
    started: list[WireServer] = []
    ready, stop = threading.Event(), asyncio.Event()

    async def main() -> None:
        async with serve(answer) as wire:
            started.append(wire)
            ready.set()
            await asyncio.wait_for(stop.wait(), 600)

    thread = threading.Thread(target=loop.run_until_complete, args=(main(),), name="provider")
    thread.start()
    assert ready.wait(5)
    try:
        yield started[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        join_threads([thread])
        loop.close()


def model_agent(url: str, *tools: str, **options: Any) -> None:
    """Make the public agent `model`."""
    Agent.objects.create(
        name="model",
        is_public=True,
        provider=ModelProvider.OPENAI_COMPAT,
        model="m",
        options={"base_url": url, **options},
        tools=list(tools),
    )


def asking(dial: Dial, **fields: Any) -> UampClient:
    """Return a client that has asked the agent."""
    client = dial()
    client.create_session(agent="model", **fields)
    client.ask("Hello")
    return client


def failed(client: UampClient, code: str) -> tuple[list[Frame], dict[str, Any]]:
    """Return the frames up to the one error, whose code it must be, and the error."""
    frames = client.until(*TERMINAL, timeout=60)
    assert frames[-1]["type"] == "response.error", frames[-1]
    error: dict[str, Any] = frames[-1]["error"]
    assert error["code"] == code, error
    assert "secret" not in json.dumps(frames)
    assert_settled(frames[-1]["response_id"], "failed")
    return frames, error


def done(client: UampClient) -> Frame:
    """Return the `response.done`."""
    frames = client.until(*TERMINAL, timeout=60)
    assert frames[-1]["type"] == "response.done", frames[-1]
    assert_settled(frames[-1]["response_id"], "completed")
    return frames[-1]


def assert_settled(response_id: str, status: str) -> None:
    """Check that nothing of a response is left that runs, and that it has one end."""
    assert Response.objects.get(pk=response_id).status == status
    assert not Response.objects.filter(status__in=Response.LIVE).exists()
    assert not ToolCall.objects.filter(status__in=ToolCall.OPEN).exists()
    ends = ["response.done", "response.error", "response.cancelled"]
    assert ChatEvent.objects.filter(response_id=response_id, type__in=ends).count() == 1


def kept_text() -> str:
    """Return the assistant's message."""
    return Message.objects.get(role="assistant").content


async def call_tool(exchange: Exchange, name: str, arguments: str) -> None:
    """Ask for one tool call, with its usage."""
    function = {"name": name, "arguments": arguments}
    await exchange.send(STREAM_HEAD)
    await exchange.delta(
        tool_calls=[{"index": 0, "id": "call_1", "type": "function", "function": function}]
    )
    await exchange.chunk(choices=[], usage={"prompt_tokens": 7, "completion_tokens": 3})
    await exchange.finish("tool_calls")


async def say(exchange: Exchange, text: str) -> None:
    """Answer in words, with usage."""
    await exchange.send(STREAM_HEAD)
    await exchange.delta(content=text)
    await exchange.chunk(choices=[], usage={"prompt_tokens": 10, "completion_tokens": 2})
    await exchange.finish()
