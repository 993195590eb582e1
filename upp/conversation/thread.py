"""A stored conversation (UPP-1.3 §8).

A thread is a list of messages with an id and two timestamps; it knows no model.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, TypedDict
from uuid import uuid4

import msgspec

from upp.conversation.messages import (
    AssistantInput,
    AssistantMessage,
    Message,
    UserInput,
    UserMessage,
)
from upp.conversation.turn import Turn


def _new_id() -> str:
    return str(uuid4())


def _now() -> datetime:
    return datetime.now(UTC)


class ThreadJSON(TypedDict):
    """The JSON of a thread (UPP-1.3 §8); times in ISO 8601."""

    id: str
    messages: list[dict[str, Any]]
    createdAt: str
    updatedAt: str


class Thread(msgspec.Struct, kw_only=True, rename="camel"):
    """Messages in order; its JSON is {id, messages, createdAt, updatedAt}."""

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
        """Add messages; return the thread. Raises TypeError for anything but messages."""
        values: tuple[Any, ...] = messages
        for value in values:
            if not isinstance(value, Message):
                kind = type(value).__name__
                raise TypeError(
                    f"A thread holds messages, not {kind}: "
                    "add them with user(...) and assistant(...)."
                )
        self.messages.extend(messages)
        self.updated_at = _now()
        return self

    def user(self, content: UserInput) -> "Thread":
        """Add a user message with content as for `UserMessage`; return the thread."""
        return self.push(UserMessage(content=content))

    def assistant(self, content: AssistantInput) -> "Thread":
        """Add an assistant message with content as for `AssistantMessage`; return the thread."""
        return self.push(AssistantMessage(content=content))

    def clear(self) -> "Thread":
        """Remove all messages; return the thread."""
        self.messages.clear()
        return self.push()

    def to_json(self) -> ThreadJSON:
        """Return the JSON shape: times as ISO 8601, bytes as base64."""
        shape: ThreadJSON = msgspec.json.decode(msgspec.json.encode(self))
        return shape

    @classmethod
    def from_json(cls, shape: Mapping[str, Any]) -> "Thread":
        """Create a thread from its JSON shape; raises msgspec.ValidationError with the place."""
        return msgspec.convert(shape, cls)
