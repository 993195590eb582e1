"""A short tool that leaves a line in a journal, and the script of an agent that calls it once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agents_app.scripts import SCRIPTS, asked_text
from agents_app.tools import tool
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
    """Note something in the first step, and tell it slowly in the second."""
    if not isinstance(request.messages[-1], ToolResultMessage):
        yield Text(FIRST)
        yield Call(name="note", arguments={"journal": asked_text(agent, request)})
        return
    for word in WORDS:
        yield Text(word)
        yield Pause(0.05)


# A server process imports this module for its tool, and so knows the script.
SCRIPTS["noter"] = noter
