"""Hooks into the life of a run (UAP §10).

The law: hooks are told at the borders of steps and change nothing, except `stop_condition`, which
ends a run, and `on_error`, which may give a result in place of an error.
"""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from uap.result import GenerateResult
from uap.state import AgentState
from upp import ToolCall, ToolExecution

Told = Awaitable[None] | None


@dataclass(frozen=True, kw_only=True)
class AgentStrategy:
    """The hooks (UAP §10.1), each of them sync or async; what they raise ends the run.

    In a step: `on_step_start`, `on_reason` (react), `on_act` with the calls, `on_observe` with what
    was executed, `on_step_end` with the step's own turn and the state, then `stop_condition`. Then
    `on_complete`, or `on_error`, which recovers when it returns a result.
    """

    stop_condition: Callable[[AgentState], bool | Awaitable[bool]] | None = None
    on_step_start: Callable[[int, AgentState], Told] | None = None
    on_reason: Callable[[int, str], Told] | None = None
    on_act: Callable[[int, Sequence[ToolCall]], Told] | None = None
    on_observe: Callable[[int, Sequence[ToolExecution]], Told] | None = None
    on_step_end: Callable[[int, GenerateResult], Told] | None = None
    on_complete: Callable[[GenerateResult], Told] | None = None
    on_error: (
        Callable[[Exception, AgentState], GenerateResult | Awaitable[GenerateResult | None] | None]
        | None
    ) = None


async def call_hook(hook: Callable[..., Any] | None, *arguments: Any) -> Any:
    """Return what a hook gives, awaited when it is async; None without a hook."""
    if hook is None:
        return None
    given = hook(*arguments)
    return await given if inspect.isawaitable(given) else given
