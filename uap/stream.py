"""Events of a running agent, and the object through which one follows it (UAP §11).

The agent's own events and the model's come in one stream, in the order in which they
happened; the outcome is the same as without following.
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
    """One event of an agent's stream: `uap` or `upp` is set, as `source` says (UAP §11.2)."""

    source: Literal["uap", "upp"]
    uap: UAPEvent | None = None
    upp: StreamEvent | None = None


Emit = Callable[[AgentStreamEvent], Awaitable[None]]


class StreamedRun(Protocol):
    """The return type of a strategy's `stream` (UAP §11.1); an AgentStreamResult is one.

    `result` is the outcome as something that can be awaited, or a function that gives it.
    """

    def __aiter__(self) -> AsyncIterator[AgentStreamEvent]:
        """Give the events."""

    @property
    def result(self) -> Any:
        """The GenerateResult, when the events are over; raises what the run raised."""

    def abort(self) -> Any:
        """End the run."""


async def follow(run: StreamedRun, emit: Emit) -> GenerateResult:
    """Give each event of a run to `emit` and return what it came to.

    A run that is not followed to its end is aborted. Raises what the run raises.
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
    """A run of an agent that one follows (UAP §11.1).

    `async for` gives its events, `await stream.result()` (or `await stream`) what `generate` would
    have returned; `abort()` ends it, and both then raise UPPError CANCELLED. A loop that is left
    early ends the run when it is inside `async with`.
    """

    async def result(self) -> GenerateResult:
        """Return the turn and the state when the run is over; raises what the run raised."""
        return await self.outcome()
