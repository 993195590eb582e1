"""Requests, scripts and runs, with what comes of a run: its events, its output, its failure."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from agents_app.runtime.agent_run import AgentError, Receive, RunFinished, RunRequest, run_agent
from agents_app.selectors import AgentSpec
from tests.agents_app.run_context import Broker, Media, as_event
from uamp.events import Event
from uamp.output import OutputBuilder
from uamp.types.content import ContentItem, Message
from uamp.types.session import FunctionDefinition, ToolDefinition
from upp import LLMRequest, ToolResultMessage
from upp.providers.scripted import Call, Step, Text

Play = Callable[[LLMRequest], AsyncIterator[Step]]
WEATHER = ToolDefinition(function=FunctionDefinition(name="weather", description="d"))


def with_tools(spec: AgentSpec, *tools: str, **values: Any) -> AgentSpec:
    fields = {name: getattr(spec, name) for name in spec.__struct_fields__}
    return AgentSpec(**{**fields, "tools": tools, **values})


def request_of(text: str = "hello", *items: ContentItem, **values: Any) -> RunRequest:
    history = [Message(role="user", content=text, content_items=items or None)]
    return RunRequest(response_id="r1", history=history, **values)


async def run(
    spec: AgentSpec,
    request: RunRequest,
    *,
    broker: Broker | None = None,
    media: Media | None = None,
) -> tuple[list[Event], RunFinished]:
    """Return a run's events and its end."""
    door, loader = broker or Broker(), media or Media()
    events: list[Event] = []
    end = await run_agent(spec, request, keep_in(events), broker=door, media=loader)
    return events, end


def keep_in(events: list[Event]) -> Receive:
    """Return a receiver that appends each event."""

    def receive(piece: Event | str) -> None:
        events.append(as_event(piece))

    return receive


async def failure(spec: AgentSpec, request: RunRequest, broker: Broker | None = None) -> AgentError:
    with pytest.raises(AgentError) as caught:
        await run(spec, request, broker=broker)
    return caught.value


def output(events: list[Event], *before: ContentItem) -> list[ContentItem]:
    """Return the output that a client assembles from a run's events."""
    builder = OutputBuilder()
    for event in events:
        builder.add(event)
    return [*before, *builder.output]


def calling(name: str, **arguments: Any) -> Play:
    """Return a script that calls a tool once and says what it gave back."""

    async def script(request: LLMRequest) -> AsyncIterator[Step]:
        last = request.messages[-1]
        if isinstance(last, ToolResultMessage):
            result = last.results[-1]
            yield Text(f"{'failed: ' if result.is_error else ''}{result.result}")
        else:
            yield Call(name=name, arguments=arguments, call_id="c1")

    return script
