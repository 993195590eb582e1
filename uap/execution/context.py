"""The context that a strategy is given, and the protocol that it fulfils (UAP §5.1)."""

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

    `state` does not hold `input` yet: a strategy appends it, and all that comes of it. `input` is
    None when the run goes on where `state` ends. `llm` is the agent's model with its tools, which
    runs them by itself without a limit of ours. `save` keeps a checkpoint (it never raises); a
    strategy awaits it after each `step_end`, and the agent after the run. The built-in strategies
    do all that through `uap.execution.Steps`, and so may others.
    """

    agent: RunningAgent
    llm: LLMInstance
    input: Message | None
    state: AgentState
    tools: tuple[Tool, ...]
    strategy: AgentStrategy
    save: Callable[[AgentState], Awaitable[None]]


class ExecutionStrategy(Protocol):
    """The way in which an agent works out its answer (UAP §5.1).

    Any object with these three members is a strategy.
    """

    @property
    def name(self) -> str:
        """The strategy's name, for logs."""

    async def execute(self, context: ExecutionContext) -> ExecutionResult:
        """Run to the end. Raises what the model, a hook or an approval raises."""

    def stream(self, context: ExecutionContext) -> StreamedRun:
        """Like `execute`, but live; the result is the same (UAP §11.3).

        What comes back is iterated for its events, has a `result` and can be aborted (UAP §11.1).
        """
