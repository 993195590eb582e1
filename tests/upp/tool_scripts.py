"""Scripted models that call tools."""

from collections.abc import AsyncIterator
from typing import Any

from upp import (
    LLMRequest,
    Tool,
    ToolResultMessage,
)
from upp.providers.scripted import Call, Step, Text


def tool(name: str, run: Any, **more: Any) -> Tool:
    return Tool(name=name, description="", parameters={"type": "object"}, run=run, **more)


def calls_then_answers(*calls: Call) -> Any:
    """Return a script that makes these calls once and then says what came of them."""

    async def script(request: LLMRequest) -> AsyncIterator[Step]:
        last = request.messages[-1]
        if isinstance(last, ToolResultMessage):
            yield Text(" ".join(f"{r.result}{'!' if r.is_error else ''}" for r in last.results))
            return
        for call in calls:
            yield call

    return script
