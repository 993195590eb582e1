"""Middleware around a run of an agent (UAP §9).

Input passes through the middleware in order, output in reverse order. Errors take the same way out,
until a middleware returns a result instead.
"""

import logging as standard_logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from uap.result import GenerateResult
from uap.running_agent import RunningAgent
from uap.state import AgentState
from uap.strategy import call_hook
from upp import Message


@dataclass(frozen=True, kw_only=True)
class MiddlewareContext:
    """A run before it executes; use `dataclasses.replace` to change it.

    `input` is None if the run continues where `state` ends. `metadata` belongs to this run: all
    middleware shares it and may change it.
    """

    agent: RunningAgent
    input: Message | None
    state: AgentState
    metadata: dict[str, Any] = field(default_factory=dict)


class Middleware:
    """Does nothing; override the hooks that you need, as sync or async functions (UAP §9.1)."""

    name = "middleware"

    async def before(self, context: MiddlewareContext) -> MiddlewareContext | None:  # noqa: ARG002 for subclasses
        """Return the context to continue with, or None for the given one."""
        return None

    async def after(
        self,
        context: MiddlewareContext,  # noqa: ARG002 for subclasses
        result: GenerateResult,
    ) -> GenerateResult:
        """Return the result to continue with."""
        return result

    async def on_error(
        self,
        context: MiddlewareContext,  # noqa: ARG002 for subclasses
        error: Exception,  # noqa: ARG002 for subclasses
    ) -> GenerateResult | None:
        """Return a result to recover from the error, or None to let it pass."""
        return None


async def run_through(
    middleware: Sequence[Middleware],
    context: MiddlewareContext,
    execute: Callable[[MiddlewareContext], Awaitable[GenerateResult]],
) -> GenerateResult:
    """Run `execute` inside the middleware (UAP §9.2).

    Each middleware sees the outcome of everything inside it: a result in `after`, an error,
    including its own, in `on_error`. After a recovery, the outer ones see a result. `after` and
    `on_error` get the context as the last `before` left it. Raises the error if no `on_error`
    returns a result.
    """
    latest = context

    async def enter(position: int) -> GenerateResult:
        nonlocal latest
        if position == len(middleware):
            return await execute(latest)
        current = middleware[position]
        try:
            latest = await call_hook(_hook(current, "before"), latest) or latest
            result = await enter(position + 1)
            return await _leave(current, latest, result)
        except Exception as error:
            recovered: GenerateResult | None = await call_hook(
                _hook(current, "on_error"), latest, error
            )
            if recovered is None:
                raise
            return recovered

    return await enter(0)


async def _leave(
    current: Middleware, context: MiddlewareContext, result: GenerateResult
) -> GenerateResult:
    replacement: GenerateResult | None = await call_hook(_hook(current, "after"), context, result)
    return replacement or result


def _hook(owner: Middleware, name: str) -> Callable[..., Any] | None:
    # Every hook is optional, even in objects that are not subclasses (UAP §9.1).
    hook: Callable[..., Any] | None = getattr(owner, name, None)
    return hook


LEVELS = ("debug", "info", "warning", "error")


def logging(
    *,
    level: str = "info",
    logger: Callable[[str], None] | None = None,
    include_messages: bool = False,
    include_timing: bool = True,
) -> Middleware:
    """Return middleware that logs the start and end of a run (UAP §9.3).

    `level` is debug, info, warning or error; failures are always logged as errors. Lines go to
    `logger`, or else to the standard logger `uap`. `include_messages` adds the messages. Raises
    ValueError for any other level.
    """
    if level not in LEVELS:
        raise ValueError(f"The level must be one of {', '.join(LEVELS)}, not {level!r}.")
    return _Logging(level, logger, include_messages=include_messages, include_timing=include_timing)


class _Logging(Middleware):
    name = "logging"

    def __init__(
        self,
        level: str,
        logger: Callable[[str], None] | None,
        *,
        include_messages: bool,
        include_timing: bool,
    ) -> None:
        self._level = level
        self._logger = logger
        self._include_messages = include_messages
        self._include_timing = include_timing

    async def before(self, context: MiddlewareContext) -> None:
        # One middleware serves many runs, and one run may use it twice.
        context.metadata[f"logging.{id(self)}"] = time.monotonic()
        message_text = self._message_text("input", context.input)
        self._write(self._level, f"Execution started: agent={context.agent.id}{message_text}")

    async def after(self, context: MiddlewareContext, result: GenerateResult) -> GenerateResult:
        usage, message_text = result.turn.usage, self._message_text("output", result.turn.response)
        self._write(
            self._level,
            f"Execution completed{self._timing(context)}: steps={result.state.step} "
            f"tools={len(result.turn.tool_executions)} tokens={usage.total_tokens}{message_text}",
        )
        return result

    async def on_error(self, context: MiddlewareContext, error: Exception) -> None:
        name = type(error).__name__
        self._write("error", f"Execution failed{self._timing(context)}: {name}: {error}")

    def _timing(self, context: MiddlewareContext) -> str:
        started_at = context.metadata.get(f"logging.{id(self)}")
        if not self._include_timing or started_at is None:
            return ""
        return f" in {(time.monotonic() - started_at) * 1000:.0f}ms"

    def _message_text(self, name: str, message: Message | None) -> str:
        if not self._include_messages:
            return ""
        return f" {name}={msgspec.json.encode(message).decode()}"

    def _write(self, level: str, text: str) -> None:
        if self._logger is not None:
            self._logger(f"[UAP:{level.upper()}] {text}")
        else:
            number = standard_logging.getLevelNamesMapping()[level.upper()]
            standard_logging.getLogger("uap").log(number, "[UAP:%s] %s", level.upper(), text)
