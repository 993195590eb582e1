"""Scripted agents for the tests of uap."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from uap import AgentState, AgentStreamEvent, AgentStreamResult
from upp import LLMRequest, Message, Tool, ToolResultMessage
from upp.providers.scripted import Call, ScriptedModel, Step, Text

Answer = str | Call | Sequence[Step]


class Answers:
    """A script that gives one answer after the other, and keeps the requests; the last repeats."""

    def __init__(self, *answers: Answer) -> None:
        self.requests: list[LLMRequest] = []
        self._answers = answers

    async def __call__(self, request: LLMRequest) -> AsyncIterator[Step]:
        """Give the next answer."""
        answer = self._answers[min(len(self.requests), len(self._answers) - 1)]
        self.requests.append(request)
        for step in [answer] if isinstance(answer, str | Call) else answer:
            yield Text(step) if isinstance(step, str) else step


def model(*answers: Answer, **more: Any) -> ScriptedModel:
    """Return a model that gives these answers."""
    return ScriptedModel(script=Answers(*answers), **more)


def requests(of: Any) -> list[LLMRequest]:
    """Return the requests that a model or an agent's model has got."""
    script = getattr(of, "model", of).script
    assert isinstance(script, Answers)
    return script.requests


def call(name: str, call_id: str = "c1", **arguments: Any) -> Call:
    """Return a call."""
    return Call(name=name, arguments=arguments, call_id=call_id)


def tool(name: str, run: Any = lambda _: "done", **more: Any) -> Tool:
    """Return a tool."""
    return Tool(name=name, description=name, parameters={"type": "object"}, run=run, **more)


def message_lines(messages: Sequence[Message]) -> list[str]:
    """Summarise messages, one line for each."""
    return [
        "results " + " ".join(f"{r.result}{'!' if r.is_error else ''}" for r in message.results)
        if isinstance(message, ToolResultMessage)
        else f"{type(message).__name__.removesuffix('Message').lower()} {message.text}".rstrip()
        for message in messages
    ]


async def followed(stream: AgentStreamResult) -> list[AgentStreamEvent]:
    """Return all events of a stream."""
    return [event async for event in stream]


def kinds(events: Sequence[AgentStreamEvent]) -> list[str]:
    """Return the agent's own events, as `step_start 1`."""
    return [f"{event.uap.type} {event.uap.step}" for event in events if event.uap is not None]


def content(state: AgentState) -> dict[str, Any]:
    """Return a state without ids and times, so that two runs can be compared."""
    return {name: _lasting(value) for name, value in state.to_json().items() if name != "id"}


_PASSING = {"id", "timestamp", "agentId", "startTime", "endTime", "duration", "subagentId"}


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lasting(inner) for key, inner in value.items() if key not in _PASSING}
    if isinstance(value, list):
        return [_lasting(inner) for inner in value]
    return value


def plain(value: Any) -> Any:
    """Return a value of UAP or UPP as JSON values."""
    return msgspec.json.decode(msgspec.json.encode(value))


async def settle() -> None:
    """Let everything that can run now do so."""
    for _ in range(20):
        await asyncio.sleep(0)
