"""The context passed to a strategy, and the protocol that a strategy implements (UAP §5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from uap.result import ExecutionResult
    from uap.running_agent import RunningAgent
    from uap.state import AgentState
    from uap.strategy import AgentStrategy
    from uap.stream import StreamedRun
    from upp import LLMInstance, Message, Tool


@dataclass(frozen=True, kw_only=True)
class ExecutionContext:
    """One run of an agent.

    `state` does not include `input` yet: the strategy appends it and everything that follows.
    `input` is None if the run continues where `state` ends. `llm` is the agent's model, which runs
    its tools itself, without a limit set here. `save` stores a checkpoint and never raises;
    strategies await it after each `step_end`, the agent after the run. The built-in strategies do
    all this through `uap.execution.Steps`, which others may use too.
    """

    agent: RunningAgent
    llm: LLMInstance
    input: Message | None
    state: AgentState
    tools: tuple[Tool, ...]
    strategy: AgentStrategy
    save: Callable[[AgentState], Awaitable[None]]


class ExecutionStrategy(Protocol):
    """The way an agent works out its answer (UAP §5.1).

    Any object with these three members is a strategy.
    """

    @property
    def name(self) -> str:
        """The strategy's name, for logs."""

    async def execute(self, context: ExecutionContext) -> ExecutionResult:
        """Run to the end. Raises errors of the model, a hook or an approval."""

    def stream(self, context: ExecutionContext) -> StreamedRun:
        """Like `execute`, but live; the result is the same (UAP §11.3).

        The returned object can be iterated for its events, has a `result` and can be aborted (UAP
        §11.1).
        """
