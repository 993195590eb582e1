"""Messages of a stored conversation."""

from typing import Any

from uamp.types.content import Message, ToolCallData
from upp import AssistantMessage, UserMessage
from upp import Message as ModelMessage

PNG = b"\x89PNG\r\n\x1a\n rest"
CONTENT = "550e8400-e29b-41d4-a716-44665544000"


def user(text: str | None = None, *items: Any, name: str | None = None) -> Message:
    return Message(role="user", content=text, content_items=items or None, name=name)


def call(call_id: str, arguments: str = "{}") -> ToolCallData:
    return ToolCallData(id=call_id, name="find", arguments=arguments)


def shape(messages: tuple[ModelMessage, ...] | list[ModelMessage]) -> list[Any]:
    """Return messages without ids and times."""
    shapes: list[Any] = []
    for message in messages:
        if isinstance(message, UserMessage):
            shapes.append(("user", [getattr(block, "text", block) for block in message.content]))
        elif isinstance(message, AssistantMessage):
            texts = [getattr(block, "text", block) for block in message.content]
            shapes.append(("assistant", texts, [c.tool_call_id for c in message.tool_calls]))
        else:
            shapes.append(("results", [(r.tool_call_id, r.result) for r in message.results]))
    return shapes
