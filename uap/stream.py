"""Events of a running agent, and the object through which one follows it (UAP §11).

The law: the agent's own events and the model's come in one stream, in the order in which they
happened; the outcome is the same as without following.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec

from uap.result import GenerateResult
from upp import Following, StreamEvent

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


class AgentStreamResult(Following[AgentStreamEvent, GenerateResult]):
    """A run of an agent that one follows (UAP §11.1).

    `async for` gives its events, `await stream.result()` (or `await stream`) what `generate` would
    have returned; `abort()` ends it, and both then raise UPPError CANCELLED. A loop that is left
    early ends the run when it is inside `async with`.
    """

    async def result(self) -> GenerateResult:
        """Return the turn and the state when the run is over; raises what the run raised."""
        return await self.outcome()
