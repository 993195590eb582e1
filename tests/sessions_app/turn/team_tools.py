"""An agent that follows orders in JSON, and the long tools that they name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from agents_app.providers.scripts import SCRIPTS, user_text, written_text
from tests.sessions_app.tools import long_tools
from upp import (
    AssistantMessage,
    ErrorCode,
    LLMRequest,
    TextBlock,
    ToolResultMessage,
    UPPError,
    UserMessage,
)
from upp.providers.scripted import Call, Fail, Pause, Reasoning, Step, Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from agents_app.selectors import AgentSpec

STEPS = long_tools.STEPS
GATED = long_tools.GATED
REFUSE = long_tools.REFUSE
REPEAT = long_tools.REPEAT

# Everything that any agent of this process was shown.
read: list[str] = []


def order(**task: Any) -> str:
    """Return a task as the doer reads it.

    `think` and `say` come first, `words` is how many words it then says slowly, `call` with
    `arguments` is a tool, and `also` another one that is called before it, `fail` breaks off. Once
    a tool has answered, it says what it received.
    """
    return msgspec.json.encode(task).decode()


async def doer(agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Do what the task says, and say what came of it."""
    remember(request)
    last = request.messages[-1]
    if isinstance(last, ToolResultMessage):
        result = last.results[-1]
        received = f"{'failed' if result.is_error else 'received'}: {result.result}"
        yield Text(received.removeprefix(written_text(request)))
        return
    task: dict[str, Any] = msgspec.json.decode(user_text(agent, request))
    if "think" in task:
        yield Reasoning(task["think"])
    if "say" in task:
        yield Text(task["say"])
    for number in range(task.get("words", 0)):
        yield Text(f"word{number} ")
        yield Pause(0.05)
    if "fail" in task:
        yield Fail(
            UPPError("It was made to fail.", code=ErrorCode.PROVIDER_ERROR, provider="scripted")
        )
    for call in (task.get("also", {}), task):
        if "call" in call:
            yield Call(name=call["call"], arguments=call.get("arguments", {}))


def remember(request: LLMRequest) -> None:
    """Keep what a model is shown."""
    for message in request.messages:
        if isinstance(message, UserMessage | AssistantMessage):
            read.extend(block.text for block in message.content if isinstance(block, TextBlock))
        else:
            read.extend(str(result.result) for result in message.results)


SCRIPTS["doer"] = doer
