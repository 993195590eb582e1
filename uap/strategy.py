"""Hooks into the life cycle of a run (UAP §10).

Hooks are called between steps. `stop_condition` ends a run, `on_error` may return a result to
recover from an error, and hooks that get a state may return it with changed metadata.
"""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from uap.result import GenerateResult
from uap.state import AgentState
from upp import ToolCall, ToolExecution

HookResult = Awaitable[None] | None
Marked = Awaitable[AgentState | None] | AgentState | None


@dataclass(frozen=True, kw_only=True)
class AgentStrategy:
    """The hooks (UAP §10.1), each sync or async; their errors end the run.

    In each step: `on_step_start`, `on_reason` (react), `on_act` with the calls, `on_observe` with
    the executions, `on_step_end` with the step's own turn and the state, then `stop_condition`. At
    the end: `on_complete`, or `on_error`, which recovers by returning a result. `on_step_start` and
    `on_step_end` may return the given state with changed metadata for the run to continue with
    (`state.with_metadata("totalTokens", 7)`), so that the stop condition can use facts that only
    the run knows. Any other change to the state raises ValueError.
    """

    stop_condition: Callable[[AgentState], bool | Awaitable[bool]] | None = None
    on_step_start: Callable[[int, AgentState], Marked] | None = None
    on_reason: Callable[[int, str], HookResult] | None = None
    on_act: Callable[[int, Sequence[ToolCall]], HookResult] | None = None
    on_observe: Callable[[int, Sequence[ToolExecution]], HookResult] | None = None
    on_step_end: Callable[[int, GenerateResult], Marked] | None = None
    on_complete: Callable[[GenerateResult], HookResult] | None = None
    on_error: (
        Callable[[Exception, AgentState], GenerateResult | Awaitable[GenerateResult | None] | None]
        | None
    ) = None


async def call_hook(hook: Callable[..., Any] | None, *arguments: Any) -> Any:
    """Return a hook's result, awaited if it is async; None without a hook."""
    if hook is None:
        return None
    result = hook(*arguments)
    return await result if inspect.isawaitable(result) else result
