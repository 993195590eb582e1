"""Long tools for the tests of the workers; a worker process imports them too."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uamp
from agents_app.tools.registry import ServerTool, ToolContext, ToolError, ToolOutcome, tool
from tests.threads import thread_pool

if TYPE_CHECKING:
    from collections.abc import Callable


def open_gate(journal: Path) -> None:
    """Let the tool that writes this journal go on."""
    journal.with_suffix(".gate").touch()


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
    gate, deadline = Path(arguments["journal"]).with_suffix(".gate"), time.monotonic() + 60
    while not gate.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
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
    """Return a value that JSON cannot represent."""
    return object()


# --- Tools that break what a tool must not break ---


def _hang(context: ToolContext, arguments: dict[str, Any]) -> ToolOutcome:
    _journal(arguments, str(os.getpid()))
    match arguments["how"]:
        case "sleep":
            time.sleep(60)
        case "c":
            # Holds the interpreter's lock: no other thread of the process runs.
            ctypes.PyDLL(None).sleep(60)
        case _:
            while True:
                pass
    return ToolOutcome(result="went on")


def _leave(context: ToolContext, arguments: dict[str, Any]) -> ToolOutcome:
    match arguments["how"]:
        case "SystemExit":
            sys.exit("the password is hunter2")
        case "KeyboardInterrupt":
            raise KeyboardInterrupt
        case "exit":
            os._exit(3)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "close":
            os.closerange(3, 100)
    return ToolOutcome(result="stayed")


def _leave_child(context: ToolContext, arguments: dict[str, Any]) -> ToolOutcome:
    process = subprocess.Popen(["sleep", "60"], close_fds=False)  # noqa: S607 any program does
    _journal(arguments, str(process.pid))
    if arguments.get("die"):
        os._exit(0)
    return ToolOutcome(result="left one behind")


@tool
def eat(mb: int) -> str:
    """Use memory."""
    eaten = [bytearray(1024 * 1024) for _ in range(mb)]
    return f"{len(eaten)} MB"


@tool
def odd_result(how: str) -> object:
    """Return something odd."""
    odd = {
        "bytes outcome": ToolOutcome(result=b"bytes"),  # type: ignore[arg-type]  # what is tested
        "nul": "a\0b",
        "surrogate": "a\ud800b",
        "item": ToolOutcome(result="", content_items=(uamp.TextContent(text="a\0b\ud800"),)),
        "no item": ToolOutcome(result="", content_items=({"type": "text"},)),  # type: ignore[arg-type]  # as above
        "nothing": None,
        "nan": float("nan"),
    }
    return odd.get(how, object()) if how != "nothing" else None


@tool
def threads(context: ToolContext, count: int) -> str:
    """Report progress from many threads."""

    def work(number: int) -> None:
        for step in range(20):
            context.progress(step=step, stage=str(number))
            item = context.write_content(
                f"{number} {step}".encode(), mime_type="text/plain", filename="t.txt"
            )
            content = context.read_content(str(getattr(item, "content_id", "")))
            if content.data != f"{number} {step}".encode():
                raise AssertionError(content)

    with thread_pool(count) as pool:
        list(pool.map(work, range(count)))
    return f"{count} threads"


@tool
def count_calls() -> int:
    """Count the tool calls in the database."""
    from sessions_app.models import ToolCall  # noqa: PLC0415 apps are set up when it runs

    return ToolCall.objects.count()


@tool
def whoami() -> str:
    """Return the ids of the process and its group."""
    return f"{os.getpid()} {os.getpgid(0)}"


STEPS = _tool("steps", _steps)
RAPID = _tool("rapid", _rapid)
GATED = _tool("gated", _gated)
ONCE = _tool("once", _once, idempotent=False)
REPEAT = _tool("repeat", _repeat)
REFUSE = _tool("refuse", _refuse)
BREAK = _tool("break", _break)
HANG = _tool("hang", _hang)
HANG_ONCE = _tool("hang_once", _hang, idempotent=False)
LEAVE = _tool("leave", _leave)
LEAVE_ONCE = _tool("leave_once", _leave, idempotent=False)
LEAVE_CHILD = _tool("leave_child", _leave_child)
LEAVE_CHILD_AND_DIE = _tool(
    "leave_child_and_die",
    lambda context, arguments: _leave_child(context, {**arguments, "die": True}),
)

PATHS = [
    f"tests.sessions_app.tools.long_tools.{name}"
    for name, value in list(globals().items())
    if isinstance(value, ServerTool)
]
