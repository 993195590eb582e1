"""A short tool that leaves a line in a journal, and scripts of agents that take steps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agents_app.providers.scripts import SCRIPTS, user_text
from agents_app.tools.registry import tool
from upp import LLMRequest, ToolResultMessage
from upp.providers.scripted import Call, Pause, Step, Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from agents_app.selectors import AgentSpec

WORDS = [f"word{number} " for number in range(40)]
FIRST = "I note it. "


@tool(long_running=False)
def note(journal: str) -> str:
    """Write a line into a journal."""
    with Path(journal).open("a") as file:
        file.write("noted\n")
    return "noted"


async def noter(agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Note something in the first step, and stream text in the second."""
    if not isinstance(request.messages[-1], ToolResultMessage):
        yield Text(FIRST)
        yield Call(name="note", arguments={"journal": user_text(agent, request)})
        return
    for word in WORDS:
        yield Text(word)
        yield Pause(0.05)


async def asks_twice(_agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Call the client's tool in two steps, one after the other."""
    answers = sum(isinstance(message, ToolResultMessage) for message in request.messages)
    if answers < 2:
        yield Call(name=request.tools[0].name, arguments={"number": answers})
    else:
        yield Text("Both are answered.")


# A server process imports this module for its tool, and so knows the script.
SCRIPTS.update({"noter": noter, "asks-twice": asks_twice})
