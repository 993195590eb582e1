"""Events of a running agent, and the object for following it (UAP §11).

The agent's own events and those of the model form one stream, in the order in which they happened;
the outcome is the same as without a stream.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Literal, Protocol

import msgspec

from uap.result import GenerateResult
from upp import Following, StreamEvent
from upp.middleware.chain import maybe_await

UAPEventType = Literal[
    "step_start",
    "step_end",
    "reasoning",
    "action",
    "observation",
    "subagent_start",
    "subagent_event",
    "subagent_end",
]


class UAPEvent(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An event of the agent itself.

    `data` by type, its members in camelCase:

    - step_start: `phase` (react: reasoning; plan: planning, replanning, execute), `planStep`
    - step_end: `usage` of the step, `phase`, `plan` as it is now
    - reasoning: `reasoning`; action: `toolCalls`; observation: `observations` (ToolExecution)
    - subagent_start: `subagentId`, `subagentType`, `parentToolCallId`, `prompt`, `timestamp`
    - subagent_event: the three names and `innerEvent` (AgentStreamEvent)
    - subagent_end: the three names, `timestamp`, `success`, `result` or `error`,
      `toolExecutions`, `usage`

    Timestamps are in milliseconds since 1970.
    """

    type: UAPEventType
    step: int
    agent_id: str
    data: dict[str, Any]


class AgentStreamEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event of an agent's stream; `source` says whether `uap` or `upp` is set (UAP §11.2)."""

    source: Literal["uap", "upp"]
    uap: UAPEvent | None = None
    upp: StreamEvent | None = None


Emit = Callable[[AgentStreamEvent], Awaitable[None]]


class StreamedRun(Protocol):
    """The return type of a strategy's `stream` (UAP §11.1), implemented by AgentStreamResult.

    `result` is an awaitable of the outcome, or a function that returns one.
    """

    def __aiter__(self) -> AsyncIterator[AgentStreamEvent]:
        """Iterate over the events."""

    @property
    def result(self) -> Any:
        """The GenerateResult once the events are over; raises the error of the run."""

    def abort(self) -> Any:
        """End the run."""


async def follow(run: StreamedRun, emit: Emit) -> GenerateResult:
    """Pass each event of a run to `emit` and return the result.

    A run that is not followed to its end is aborted. Raises the error of the run.
    """
    if isinstance(run, AgentStreamResult):
        return await run.relay(emit)
    is_over = False
    try:
        async for event in run:
            await emit(event)
        outcome = run.result
        result: GenerateResult = await maybe_await(outcome() if callable(outcome) else outcome)
        is_over = True
        return result
    finally:
        if not is_over:
            await maybe_await(run.abort())


class AgentStreamResult(Following[AgentStreamEvent, GenerateResult]):
    """A run of an agent to follow (UAP §11.1).

    Iterate over its events with `async for`; `await stream.result()` (or `await stream`) returns
    what `generate` would have returned. `abort()` ends it, after which both raise UPPError
    CANCELLED. Inside `async with`, leaving the loop early ends the run.
    """

    async def result(self) -> GenerateResult:
        """Wait for the end of the run and return its result; raises the error of the run."""
        return await self.outcome()
