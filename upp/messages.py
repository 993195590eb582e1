"""Messages and the blocks that they are made of (UPP-1.3 §6).

The law: a message is a frozen value with its own id; JSON is camelCase, bytes are base64 and absent
members are left out. The system prompt is configuration, never a message.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from random import getrandbits
from typing import Any

import msgspec

from upp.tools import ToolCall, ToolResult


class _Tagged(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    omit_defaults=True,
    tag_field="type",
):
    """What all tagged values share."""


class Base64Source(_Tagged, frozen=True, kw_only=True, tag="base64"):
    """Binary data as base64 text."""

    data: str


class UrlSource(_Tagged, frozen=True, kw_only=True, tag="url"):
    """Data that the provider fetches itself."""

    url: str


class BytesSource(_Tagged, frozen=True, kw_only=True, tag="bytes"):
    """Binary data as bytes."""

    data: bytes


class TextSource(_Tagged, frozen=True, kw_only=True, tag="text"):
    """A document's plain text."""

    data: str


class TextBlock(_Tagged, frozen=True, kw_only=True, tag="text"):
    """Plain text."""

    text: str


class ReasoningBlock(_Tagged, frozen=True, kw_only=True, tag="reasoning"):
    """What a model thought before it answered; signatures live in the message's metadata."""

    text: str


class ImageBlock(_Tagged, frozen=True, kw_only=True, tag="image"):
    """A picture; width and height in pixels."""

    source: Base64Source | UrlSource | BytesSource
    mime_type: str
    width: int | None = None
    height: int | None = None


class DocumentBlock(_Tagged, frozen=True, kw_only=True, tag="document"):
    """A document: its bytes, its address or its plain text."""

    source: Base64Source | UrlSource | TextSource
    mime_type: str
    title: str | None = None


class AudioBlock(_Tagged, frozen=True, kw_only=True, tag="audio"):
    """A sound; duration in seconds."""

    data: bytes
    mime_type: str
    duration: float | None = None


class VideoBlock(_Tagged, frozen=True, kw_only=True, tag="video"):
    """A film; duration in seconds, width and height in pixels."""

    data: bytes
    mime_type: str
    duration: float | None = None
    width: int | None = None
    height: int | None = None


class BinaryBlock(_Tagged, frozen=True, kw_only=True, tag="binary"):
    """Any other data."""

    data: bytes
    mime_type: str
    metadata: dict[str, Any] | None = None


UserContent = TextBlock | ImageBlock | DocumentBlock | AudioBlock | VideoBlock | BinaryBlock
AssistantContent = TextBlock | ReasoningBlock | ImageBlock | AudioBlock | VideoBlock


# A UUID of version 4 has 122 free bits; these are the others.
_FREE_BITS = 0xFFFFFFFF_FFFF_0FFF_3FFF_FFFFFFFFFFFF
_VERSION_4 = 0x00000000_0000_4000_8000_000000000000


def _new_id() -> str:
    # A long history makes many messages at once: no system call for the id of each.
    digits = f"{getrandbits(128) & _FREE_BITS | _VERSION_4:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _now() -> datetime:
    return datetime.now(UTC)


class _Message(_Tagged, frozen=True, kw_only=True):
    """What all messages share."""

    id: str = msgspec.field(default_factory=_new_id)
    timestamp: datetime = msgspec.field(default_factory=_now)
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)


class _Speech(_Message, frozen=True, kw_only=True):
    """What messages with blocks share: their blocks by kind (UPP-1.3 §6.1)."""

    content: tuple[UserContent | AssistantContent, ...]

    @property
    def text(self) -> str:
        """The text blocks, joined by an empty line."""
        return "\n\n".join(block.text for block in self.content if isinstance(block, TextBlock))

    @property
    def images(self) -> tuple[ImageBlock, ...]:
        """The pictures."""
        return tuple(block for block in self.content if isinstance(block, ImageBlock))

    @property
    def documents(self) -> tuple[DocumentBlock, ...]:
        """The documents."""
        return tuple(block for block in self.content if isinstance(block, DocumentBlock))

    @property
    def audio(self) -> tuple[AudioBlock, ...]:
        """The sounds."""
        return tuple(block for block in self.content if isinstance(block, AudioBlock))

    @property
    def video(self) -> tuple[VideoBlock, ...]:
        """The films."""
        return tuple(block for block in self.content if isinstance(block, VideoBlock))

    @property
    def reasoning(self) -> tuple[ReasoningBlock, ...]:
        """The thoughts."""
        return tuple(block for block in self.content if isinstance(block, ReasoningBlock))


class UserMessage(_Speech, frozen=True, kw_only=True, tag="user"):
    """What the user (or the program for the user) said."""

    content: tuple[UserContent, ...]


class AssistantMessage(_Speech, frozen=True, kw_only=True, tag="assistant"):
    """What the model said, and the calls that it asks for."""

    content: tuple[AssistantContent, ...]
    tool_calls: tuple[ToolCall, ...] = ()

    @property
    def has_tool_calls(self) -> bool:
        """Whether there is at least one call."""
        return bool(self.tool_calls)


class ToolResultMessage(_Message, frozen=True, kw_only=True, tag="tool_result"):
    """The results of one round of calls, in the order of the calls.

    `content` is always empty; it is written because the original implementation does (§6.3).
    """

    results: tuple[ToolResult, ...]
    # A factory of our own keeps the member in the JSON: msgspec leaves only plain defaults out.
    content: tuple[TextBlock, ...] = msgspec.field(default_factory=lambda: ())

    @property
    def text(self) -> str:
        """The results, joined by an empty line; those that are no texts as JSON."""
        return "\n\n".join(
            one.result if isinstance(one.result, str) else msgspec.json.encode(one.result).decode()
            for one in self.results
        )


Message = UserMessage | AssistantMessage | ToolResultMessage
InferenceInput = str | Message | UserContent


def to_message(given: InferenceInput) -> Message:
    """Return the message that an input stands for: a text or a block is a user message."""
    if isinstance(given, str):
        return UserMessage(content=(TextBlock(text=given),))
    if isinstance(given, UserMessage | AssistantMessage | ToolResultMessage):
        return given
    return UserMessage(content=(given,))


def unanswered_calls(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """Return the calls at the end of a conversation that have no result yet.

    Only the last assistant message counts, and only when nothing but results comes after it.
    """
    answered: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, ToolResultMessage):
            answered.update(result.tool_call_id for result in message.results)
        elif isinstance(message, AssistantMessage):
            return tuple(c for c in message.tool_calls if c.tool_call_id not in answered)
        else:
            break
    return ()
