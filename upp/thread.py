"""A conversation that one keeps (UPP-1.3 §8).

The law: a thread is a list of messages with an id and two times; it knows no model.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import msgspec

from upp.messages import (
    AssistantContent,
    AssistantMessage,
    Message,
    TextBlock,
    UserContent,
    UserMessage,
)
from upp.turn import Turn


def _new_id() -> str:
    return str(uuid4())


def _now() -> datetime:
    return datetime.now(UTC)


class Thread(msgspec.Struct, kw_only=True, rename="camel"):
    """Messages in their order; its JSON is {id, messages, createdAt, updatedAt}."""

    id: str = msgspec.field(default_factory=_new_id)
    messages: list[Message] = []
    created_at: datetime = msgspec.field(default_factory=_now)
    updated_at: datetime = msgspec.field(default_factory=_now)

    def __len__(self) -> int:
        return len(self.messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages)

    def append(self, turn: Turn) -> "Thread":
        """Add the messages of a turn; return the thread."""
        return self.push(*turn.messages)

    def push(self, *messages: Message) -> "Thread":
        """Add messages; return the thread."""
        self.messages.extend(messages)
        self.updated_at = _now()
        return self

    def user(self, content: str | tuple[UserContent, ...]) -> "Thread":
        """Add what a user said; return the thread."""
        blocks = (TextBlock(text=content),) if isinstance(content, str) else content
        return self.push(UserMessage(content=blocks))

    def assistant(self, content: str | tuple[AssistantContent, ...]) -> "Thread":
        """Add what a model said; return the thread."""
        blocks = (TextBlock(text=content),) if isinstance(content, str) else content
        return self.push(AssistantMessage(content=blocks))

    def clear(self) -> "Thread":
        """Forget all messages; return the thread."""
        self.messages.clear()
        return self.push()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON shape: times as ISO 8601, bytes as base64."""
        shape: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return shape

    @classmethod
    def from_json(cls, shape: dict[str, Any]) -> "Thread":
        """Return the thread of a JSON shape; raises msgspec.ValidationError with the place."""
        return msgspec.convert(shape, cls)
