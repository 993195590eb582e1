"""Long tools for the tests of the workers; a worker process imports them too."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents_app.tools import ServerTool, ToolContext, ToolError, ToolOutcome, tool

if TYPE_CHECKING:
    from collections.abc import Callable

# Set by the tests that decide when a tool goes on.
GATE = threading.Event()


def _tool(
    name: str, run: Callable[[ToolContext, dict[str, Any]], ToolOutcome], *, idempotent: bool = True
) -> ServerTool:
    return ServerTool(
        name=name, description=name, parameters={"type": "object"}, run=run, idempotent=idempotent
    )


def _journal(arguments: dict[str, Any], line: str) -> None:
    with Path(arguments["journal"]).open("a") as file:
        file.write(f"{line}\n")


def _steps(context: ToolContext, arguments: dict[str, Any]) -> ToolOutcome:
    total = arguments["steps"]
    for step in range(1, total + 1):
        _journal(arguments, f"{os.getpid()} {step}")
        context.progress(
            percent=100 * step / total, step=step, total_steps=total, stage="steps", message="on"
        )
        time.sleep(arguments["pause"])
    return ToolOutcome(result=f"{total} steps")


def _rapid(context: ToolContext, arguments: dict[str, Any]) -> ToolOutcome:
    for stage in ("read", "write"):
        end = time.monotonic() + arguments["seconds"]
        step = 0
        while time.monotonic() < end:
            step += 1
            context.progress(step=step, stage=stage, percent=100.4 - step)
        context.progress(step=-1, stage=stage)
    return ToolOutcome(result="rapid")


def _gated(context: ToolContext, arguments: dict[str, Any]) -> ToolOutcome:
    _journal(arguments, "began")
    context.progress(stage="wait", message="first")
    context.progress(stage="wait", message="second")
    GATE.wait(20)
    context.progress(stage="go", message="third")
    _journal(arguments, "went on")
    return ToolOutcome(result="through")


def _once(context: ToolContext, arguments: dict[str, Any]) -> ToolOutcome:
    _journal(arguments, "sent")
    return ToolOutcome(result="sent")


def _repeat(context: ToolContext, arguments: dict[str, Any]) -> ToolOutcome:
    return ToolOutcome(result=arguments["text"] * arguments["times"])


def _refuse(context: ToolContext, arguments: dict[str, Any]) -> ToolOutcome:
    raise ToolError("There is no column 'price'. Name one of: cost, date.")


def _break(context: ToolContext, arguments: dict[str, Any]) -> ToolOutcome:
    raise RuntimeError("the password is hunter2")


@tool
def odd() -> object:
    """Return what no JSON can say."""
    return object()


STEPS = _tool("steps", _steps)
RAPID = _tool("rapid", _rapid)
GATED = _tool("gated", _gated)
ONCE = _tool("once", _once, idempotent=False)
REPEAT = _tool("repeat", _repeat)
REFUSE = _tool("refuse", _refuse)
BREAK = _tool("break", _break)

PATHS = [
    f"tests.sessions_app.long_tools.{name}"
    for name in ("STEPS", "RAPID", "GATED", "ONCE", "REPEAT", "REFUSE", "BREAK", "odd")
]
