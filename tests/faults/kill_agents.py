"""The tools of the kill matrix, every effect of which is a line in a journal, and its script."""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents_app.providers.scripts import SCRIPTS, user_text
from agents_app.tools.registry import ServerTool, ToolContext, ToolOutcome
from tests.faults.kill_script import JOURNAL, TALLY_STEPS, TOOL_PAUSE, WORD_PAUSE, said_in_round
from upp import LLMRequest, ToolResult, ToolResultMessage, UserMessage
from upp.providers.scripted import Call, Pause, Step, Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from agents_app.selectors import AgentSpec

# --- Tools ---


def _write(tool: str, context: ToolContext, arguments: dict[str, Any], attempt: str) -> None:
    """Append one line in one system call: it outlives the process that wrote it."""
    path = Path(os.environ[JOURNAL]) / str(arguments["tag"])
    line = f"{tool} {context.call_id} {attempt} {os.getpid()}\n"
    with path.open("ab", buffering=0) as file:
        file.write(line.encode())


def _new_attempt() -> str:
    return uuid.uuid4().hex[:8]


def _tally(context: ToolContext, arguments: dict[str, Any]) -> ToolOutcome:
    attempt = _new_attempt()
    for step in range(1, TALLY_STEPS + 1):
        context.progress(
            percent=100 * step / TALLY_STEPS, step=step, total_steps=TALLY_STEPS, stage="count"
        )
        time.sleep(TOOL_PAUSE)
        _write("tally", context, arguments, attempt)
    return ToolOutcome(result=f"counted to {TALLY_STEPS}")


def _send_once(context: ToolContext, arguments: dict[str, Any]) -> ToolOutcome:
    attempt = _new_attempt()
    for percent in (20, 40):
        context.progress(percent=percent, stage="prepare")
        time.sleep(TOOL_PAUSE)
    _write("send_once", context, arguments, attempt)
    for percent in (60, 80):
        time.sleep(TOOL_PAUSE)
        context.progress(percent=percent, stage="confirm")
    return ToolOutcome(result="sent")


def _note(context: ToolContext, arguments: dict[str, Any]) -> ToolOutcome:
    _write("note", context, arguments, _new_attempt())
    return ToolOutcome(result="noted")


_SCHEMA = {
    "type": "object",
    "properties": {"tag": {"type": "string"}},
    "required": ["tag"],
}
TALLY = ServerTool(name="tally", description="Count.", parameters=_SCHEMA, run=_tally)
SEND_ONCE = ServerTool(
    name="send_once", description="Send.", parameters=_SCHEMA, run=_send_once, idempotent=False
)
NOTE = ServerTool(
    name="note", description="Note.", parameters=_SCHEMA, run=_note, long_running=False
)


# --- What they say ---


def _rounds(request: LLMRequest) -> list[Sequence[ToolResult]]:
    rounds: list[Sequence[ToolResult]] = []
    for message in reversed(request.messages):
        if isinstance(message, UserMessage):
            break
        if isinstance(message, ToolResultMessage):
            rounds.insert(0, message.results)
    return rounds


async def speak(agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Say one round slowly, word by word, and call its tools."""
    rounds = _rounds(request)
    results = [str(result.result) for result in rounds[-1]] if rounds else []
    text, calls = said_in_round(agent.name, len(rounds), results)
    words = text.split(" ")
    for number, word in enumerate(words):
        piece = word if number == len(words) - 1 else f"{word} "
        if piece:
            yield Text(piece)
            yield Pause(WORD_PAUSE)
    for name in calls:
        yield Call(name=name, arguments={"tag": user_text(agent, request)})


# Servers and workers import this module for its tools, and so know the script.
SCRIPTS["speak"] = speak
