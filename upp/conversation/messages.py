"""Messages and their content blocks (UPP-1.3 §6).

A message is a frozen value with a unique id, as is everything in it. JSON is camelCase, bytes are
base64, and absent members are left out. The system prompt is configuration, never a message.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec.structs import force_setattr

from upp.conversation.ids import new_id
from upp.json_values.frozen import EMPTY, freeze
from upp.tools import ToolCall, ToolResult


class _Tagged(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    omit_defaults=True,
    tag_field="type",
):
    """The base of all tagged values."""


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


class _TextHolder(_Tagged, frozen=True, kw_only=True):
    text: str

    def __post_init__(self) -> None:
        value: Any = self.text
        if not isinstance(value, str):
            raise TypeError(_type_error_text(self, "text", value, "a str"))


class TextBlock(_TextHolder, frozen=True, kw_only=True, tag="text"):
    """Plain text."""


class ReasoningBlock(_TextHolder, frozen=True, kw_only=True, tag="reasoning"):
    """A model's reasoning before it answers; signatures are in the message's metadata."""


class ImageBlock(_Tagged, frozen=True, kw_only=True, tag="image"):
    """An image; width and height in pixels."""

    source: Base64Source | UrlSource | BytesSource
    mime_type: str
    width: int | None = None
    height: int | None = None

    def __post_init__(self) -> None:
        value: Any = self.source
        if not isinstance(value, Base64Source | UrlSource | BytesSource):
            expected = "a Base64Source, UrlSource or BytesSource (see Image.from_path())"
            raise TypeError(_type_error_text(self, "source", value, expected))


class DocumentBlock(_Tagged, frozen=True, kw_only=True, tag="document"):
    """A document as bytes, a URL or plain text."""

    source: Base64Source | UrlSource | TextSource
    mime_type: str
    title: str | None = None

    def __post_init__(self) -> None:
        value: Any = self.source
        if not isinstance(value, Base64Source | UrlSource | TextSource):
            expected = "a Base64Source, UrlSource or TextSource (see Document.from_path())"
            raise TypeError(_type_error_text(self, "source", value, expected))


class _DataBlock(_Tagged, frozen=True, kw_only=True):
    data: bytes
    mime_type: str

    def __post_init__(self) -> None:
        value: Any = self.data
        if not isinstance(value, bytes):
            raise TypeError(_type_error_text(self, "data", value, "bytes"))


class AudioBlock(_DataBlock, frozen=True, kw_only=True, tag="audio"):
    """Audio; duration in seconds."""

    duration: float | None = None


class VideoBlock(_DataBlock, frozen=True, kw_only=True, tag="video"):
    """A video; duration in seconds, width and height in pixels."""

    duration: float | None = None
    width: int | None = None
    height: int | None = None


class BinaryBlock(_DataBlock, frozen=True, kw_only=True, tag="binary"):
    """Any other data."""

    metadata: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        force_setattr(self, "metadata", freeze(self.metadata))


UserContent = TextBlock | ImageBlock | DocumentBlock | AudioBlock | VideoBlock | BinaryBlock
AssistantContent = TextBlock | ReasoningBlock | ImageBlock | AudioBlock | VideoBlock


def _now() -> datetime:
    return datetime.now(UTC)


class _Message(_Tagged, frozen=True, kw_only=True):
    """The base of all messages."""

    id: str = msgspec.field(default_factory=new_id)
    timestamp: datetime = msgspec.field(default_factory=_now)
    metadata: dict[str, Any] = EMPTY

    def __post_init__(self) -> None:
        value: Any = self.metadata
        if value is EMPTY:
            return
        if not isinstance(value, Mapping):
            raise TypeError(_type_error_text(self, "metadata", value, "a mapping"))
        force_setattr(self, "metadata", freeze(value))


class _Speech(_Message, frozen=True, kw_only=True):
    """The base of messages with blocks, with access to the blocks by kind (UPP-1.3 §6.1)."""

    content: tuple[UserContent | AssistantContent, ...]

    @property
    def text(self) -> str:
        """The text blocks, joined by blank lines."""
        return "\n\n".join(block.text for block in self.content if isinstance(block, TextBlock))

    @property
    def images(self) -> tuple[ImageBlock, ...]:
        """The image blocks."""
        return tuple(block for block in self.content if isinstance(block, ImageBlock))

    @property
    def documents(self) -> tuple[DocumentBlock, ...]:
        """The document blocks."""
        return tuple(block for block in self.content if isinstance(block, DocumentBlock))

    @property
    def audio(self) -> tuple[AudioBlock, ...]:
        """The audio blocks."""
        return tuple(block for block in self.content if isinstance(block, AudioBlock))

    @property
    def video(self) -> tuple[VideoBlock, ...]:
        """The video blocks."""
        return tuple(block for block in self.content if isinstance(block, VideoBlock))

    @property
    def reasoning(self) -> tuple[ReasoningBlock, ...]:
        """The reasoning blocks."""
        return tuple(block for block in self.content if isinstance(block, ReasoningBlock))


class UserMessage(_Speech, frozen=True, kw_only=True, tag="user"):
    """A message of the user, or of the program on the user's behalf.

    `content` may be given as text, as one block, or as a sequence of these; raises TypeError for
    anything else.
    """

    content: tuple[UserContent, ...]

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            content: "UserInput",
            id: str = ...,  # noqa: A002
            timestamp: datetime = ...,
            metadata: Mapping[str, Any] = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        if self.metadata is not EMPTY:
            super().__post_init__()
        if not _is_one_text(self.content):
            force_setattr(self, "content", _blocks(self, self.content, UserContent))


class AssistantMessage(_Speech, frozen=True, kw_only=True, tag="assistant"):
    """A message of the model, and the calls it makes.

    `content` may be given as text, as one block, or as a sequence of these; raises TypeError for
    anything else.
    """

    content: tuple[AssistantContent, ...]
    tool_calls: tuple[ToolCall, ...] = ()

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            content: "AssistantInput",
            tool_calls: Iterable[ToolCall] = ...,
            id: str = ...,  # noqa: A002
            timestamp: datetime = ...,
            metadata: Mapping[str, Any] = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        if self.metadata is not EMPTY:
            super().__post_init__()
        if not _is_one_text(self.content):
            force_setattr(self, "content", _blocks(self, self.content, AssistantContent))
        if self.tool_calls != ():
            calls = _items_of(self, "tool_calls", self.tool_calls, ToolCall)
            force_setattr(self, "tool_calls", calls)

    @property
    def has_tool_calls(self) -> bool:
        """Whether there is at least one call."""
        return bool(self.tool_calls)


class ToolResultMessage(_Message, frozen=True, kw_only=True, tag="tool_result"):
    """The results of one round of calls, in the order of the calls.

    `content` is always empty; it is written because the original implementation writes it (§6.3).
    """

    results: tuple[ToolResult, ...]
    # A default factory keeps the member in the JSON: msgspec omits only plain defaults.
    content: tuple[TextBlock, ...] = msgspec.field(default_factory=lambda: ())

    def __post_init__(self) -> None:
        super().__post_init__()
        force_setattr(self, "results", _items_of(self, "results", self.results, ToolResult))

    @property
    def text(self) -> str:
        """The results, joined by blank lines; results that are not text are shown as JSON."""
        return "\n\n".join(
            result.result
            if isinstance(result.result, str)
            else msgspec.json.encode(result.result).decode()
            for result in self.results
        )


Message = UserMessage | AssistantMessage | ToolResultMessage
MESSAGE_KINDS = (UserMessage, AssistantMessage, ToolResultMessage)
InferenceInput = str | Message | UserContent
UserInput = str | UserContent | Iterable[str | UserContent]
AssistantInput = str | AssistantContent | Iterable[str | AssistantContent]


def to_message(given: InferenceInput) -> Message:
    """Convert an input to a message: text or a block becomes a user message.

    Raises TypeError for anything else.
    """
    return given if isinstance(given, MESSAGE_KINDS) else UserMessage(content=given)


def _is_one_text(content: Any) -> bool:
    """Return whether content is a single text block already, as in most messages."""
    return type(content) is tuple and len(content) == 1 and type(content[0]) is TextBlock


def _blocks(message: Any, value: Any, kinds: Any) -> tuple[Any, ...]:
    """Normalize content to a tuple of blocks."""
    if type(value) is tuple and all(isinstance(block, kinds) for block in value):
        return value
    if isinstance(value, str | kinds):
        value = (value,)
    if isinstance(value, Iterable) and not isinstance(value, bytes | bytearray | Mapping):
        blocks = tuple(TextBlock(text=item) if isinstance(item, str) else item for item in value)
        wrong = [item for item in blocks if not isinstance(item, kinds)]
        if not wrong:
            return blocks
        value = wrong[0]
    names = ", ".join(kind.__name__ for kind in kinds.__args__)
    raise TypeError(
        _type_error_text(message, "content", value, f"a str, or blocks in a sequence ({names})")
    )


_ItemT = TypeVar("_ItemT", ToolCall, ToolResult)


def _items_of(message: Any, name: str, value: Any, kind: type[_ItemT]) -> tuple[_ItemT, ...]:
    """Normalize calls or results to a tuple."""
    items = tuple(value) if isinstance(value, Iterable) else (value,)
    for item in items:
        if not isinstance(item, kind):
            raise TypeError(_type_error_text(message, name, item, f"a sequence of {kind.__name__}"))
    return items


def _type_error_text(owner: Any, name: str, value: Any, expected: str) -> str:
    return f"{type(owner).__name__}.{name} must be {expected}, not {type(value).__name__}."


def unanswered_calls(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """Return the calls at the end of a conversation that have no result yet.

    Only the last assistant message counts, and only if nothing but results follows it.
    """
    answered_ids: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, ToolResultMessage):
            answered_ids.update(result.tool_call_id for result in message.results)
        elif isinstance(message, AssistantMessage):
            return tuple(c for c in message.tool_calls if c.tool_call_id not in answered_ids)
        else:
            break
    return ()


def with_joined_results(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Merge the results of each round of calls into one message.

    An interrupted round has several: the results from before and those from after. Merged, they are
    in the order of the calls, as `ToolResultMessage` requires.
    """
    if ToolResultMessage not in map(type, messages):
        # Most conversations have no results.
        return tuple(messages)
    merged: list[Message] = []
    calls: Sequence[ToolCall] = ()
    for message in messages:
        if not isinstance(message, ToolResultMessage):
            calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
        elif calls and isinstance(previous := merged[-1], ToolResultMessage):
            merged[-1] = _merge(previous, message, calls)
            continue
        merged.append(message)
    return tuple(merged)


def _merge(
    first: ToolResultMessage, second: ToolResultMessage, calls: Sequence[ToolCall]
) -> ToolResultMessage:
    places = {call.tool_call_id: place for place, call in enumerate(calls)}
    results = sorted(
        (*first.results, *second.results),
        key=lambda result: places.get(result.tool_call_id, len(places)),
    )
    metadata = {**first.metadata, **second.metadata}
    return msgspec.structs.replace(second, results=tuple(results), metadata=metadata)
