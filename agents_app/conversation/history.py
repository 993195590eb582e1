"""From a stored conversation to what a model is sent: UAMP messages to upp messages.

Everything in a conversation is data with its origin on it. What other agents said is said
to this one like a user's words, never as its own and never as instructions; a call without a result
gets one, because providers refuse such a history.
"""

import asyncio
import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from agents_app.conversation.teamwork import labelled
from uamp.types.content import (
    AudioContent,
    ContentItem,
    FileContent,
    ImageContent,
    MediaContent,
    MediaUrl,
    Message,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolCallData,
    ToolResultContent,
    ToolResultData,
    VideoContent,
    content_id_of,
    media_of,
)
from upp import (
    AssistantMessage,
    AudioBlock,
    Base64Source,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    TextBlock,
    TextSource,
    ToolCall,
    ToolResult,
    ToolResultMessage,
    UserMessage,
)
from upp import Message as ModelMessage
from upp.conversation.messages import AssistantContent, UserContent, unanswered_calls
from upp.tools import parse_call

MEDIA_BYTES = 20 * 1024 * 1024
"""What one request may carry of media; the newest ones come first."""
CONTINUE = (
    "Your answer was interrupted after the text above. Go on exactly where it stopped, and repeat"
    " nothing."
)
"""Said to a model that finds its own unfinished answer at the end of a conversation."""
NOTHING_NEW = "Nothing was said since your last answer. Answer again, or add what is missing."
"""Said to a model that is asked again after its own whole answer."""
DOCUMENT_CHARS = 200_000
"""What a text document may bring into a request; the rest is cut off and said so."""


class MediaLoader(Protocol):
    """Reads stored content for the provider's request."""

    async def load(self, content_id: str) -> tuple[bytes, str]:
        """Return the bytes and the MIME type; raises LookupError when it may not be read."""


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """What a model is sent: its messages, and the system texts that stood between them."""

    messages: tuple[ModelMessage, ...]
    system: tuple[str, ...] = ()


def attachments_of(message: ModelMessage) -> list[dict[str, Any]]:
    """Return the media of a converted message as {content_id, kind, filename, mime_type}."""
    found: list[dict[str, Any]] = message.metadata.get("uamp", {}).get("attachments", [])
    return found


async def to_conversation(
    history: Sequence[Message],
    *,
    agent_name: str,
    resume: Sequence[ContentItem] = (),
    media: MediaLoader | None = None,
    hears: bool = False,
) -> Conversation:
    """Return a conversation for the agent of that name.

    `resume` is what this response said before it was interrupted; calls in it without a result stay
    without one. With a `media` loader, attachments are named in the text and read for the model,
    and speakers are named when there are several; without one the text stays as it was written.
    """
    budget = _Media(media, hears=hears)
    await budget.read(history)
    several = media is not None and _speakers(history, agent_name)
    messages: list[ModelMessage] = []
    system: list[str] = []
    for message in history:
        if not message.content_items and not message.tool_calls and not several:
            # Most of a long conversation is plain words.
            plain = _plain(message, agent_name)
            if plain is not None:
                messages.append(plain)
                continue
        if message.role == "system":
            system.append(message.content or "")
        elif message.role == "tool":
            messages.extend(_tool_message(message))
        elif message.role == "assistant" and message.name in (None, agent_name):
            messages.extend(_said_by_agent(message))
        else:
            messages.append(_said_by_others(message, budget, labelled=several))
    messages = [*_complete(messages), *output_messages(resume)]
    last = messages[-1] if messages else None
    if resume and media is not None and isinstance(last, AssistantMessage) and not last.tool_calls:
        messages.append(UserMessage(content=(TextBlock(text=CONTINUE),)))
    return Conversation(messages=tuple(messages), system=tuple(system))


def open_ended(
    messages: Sequence[ModelMessage], *, resumes: bool, scripted: bool
) -> tuple[ModelMessage, ...]:
    """Return a conversation after which the agent speaks.

    Vendors refuse one that ends in the agent's own words, so these are followed by a prompt:
    `resumes` says that they were cut off. A script is told nothing, and its words are marked as no
    whole answer.
    """
    last = messages[-1] if messages else None
    if not isinstance(last, AssistantMessage) or last.tool_calls:
        return tuple(messages)
    if scripted:
        mark = {**last.metadata, "uap": {"unfinished": True}}
        return (*messages[:-1], msgspec.structs.replace(last, metadata=mark))
    return (*messages, UserMessage(content=CONTINUE if resumes else NOTHING_NEW))


def _plain(message: Message, agent_name: str) -> ModelMessage | None:
    """Return a message that is one text of the user's or of the agent's own; None for others."""
    if not message.content:
        return None
    content = (TextBlock(text=message.content),)
    if message.role == "user":
        return UserMessage(content=content)
    if message.role == "assistant" and message.name in (None, agent_name):
        return AssistantMessage(content=content)
    return None


def output_messages(items: Sequence[ContentItem]) -> list[ModelMessage]:
    """Return an answer's content items as the messages that a model would have made of them.

    A text after a result begins a new message. Media are left out: they were shown, not said.
    """
    messages: list[ModelMessage] = []
    content: list[AssistantContent] = []
    calls: list[ToolCall] = []
    results: list[ToolResult] = []

    def flush() -> None:
        if content or calls:
            messages.append(AssistantMessage(content=tuple(content), tool_calls=tuple(calls)))
        if results:
            # They are shown as they come; a model gets them in the order of its calls.
            places = {call.tool_call_id: place for place, call in enumerate(calls)}
            results.sort(key=lambda result: places.get(result.tool_call_id, len(places)))
            messages.append(ToolResultMessage(results=tuple(results)))
        content.clear()
        calls.clear()
        results.clear()

    for item in items:
        if results and not isinstance(item, ToolResultContent):
            flush()
        match item:
            case TextContent(text=text):
                content.append(TextBlock(text=text))
            case ThinkingContent(thinking=text):
                content.append(ReasoningBlock(text=text))
            case ToolCallContent(tool_call=call):
                calls.append(_call(call))
            case ToolResultContent(tool_result=result):
                results.append(_result(result))
            case _:
                pass
    flush()
    return messages


def _speakers(history: Sequence[Message], agent_name: str) -> bool:
    names = {
        (message.role, message.name)
        for message in history
        if message.role == "user" or (message.role == "assistant" and message.name)
    }
    return len(names - {("assistant", agent_name)}) > 1


def _said_by_agent(message: Message) -> list[ModelMessage]:
    if message.content_items:
        return output_messages(message.content_items)
    content = (TextBlock(text=message.content),) if message.content else ()
    calls = tuple(_call(call) for call in message.tool_calls or ())
    return [AssistantMessage(content=content, tool_calls=calls)] if content or calls else []


def _said_by_others(message: Message, media: "_Media", *, labelled: bool) -> UserMessage:
    items = message.content_items or ()
    content: list[UserContent] = []
    if labelled and message.name:
        kind = "agent " if message.role == "assistant" else ""
        content.append(TextBlock(text=f"[{kind}{message.name}]"))
    attached = [item for item in items if isinstance(item, MediaContent)]
    if message.content and not (media.active and attached):
        content.append(TextBlock(text=message.content))
    else:
        for item in items:
            if isinstance(item, TextContent):
                content.append(TextBlock(text=item.text))
            elif isinstance(item, MediaContent):
                content.extend(media.blocks(item))
    metadata = {"uamp": {"attachments": [_described(item) for item in attached]}}
    return UserMessage(
        content=tuple(content) or (TextBlock(text=""),), metadata=metadata if attached else {}
    )


def _tool_message(message: Message) -> list[ModelMessage]:
    if message.tool_call_id is None:
        return []
    result = ToolResult(tool_call_id=message.tool_call_id, result=message.content or "")
    return [ToolResultMessage(results=(result,))]


def _complete(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Return the messages with each call answered once and each answer called for."""
    complete: list[ModelMessage] = []
    is_open = False

    def close() -> None:
        missing = unanswered_calls(complete)
        if missing:
            said = "The call was interrupted and has no result."
            complete.append(
                ToolResultMessage(
                    results=tuple(
                        ToolResult(tool_call_id=c.tool_call_id, result=said, is_error=True)
                        for c in missing
                    )
                )
            )

    for message in messages:
        if isinstance(message, ToolResultMessage):
            wanted = {call.tool_call_id for call in unanswered_calls(complete)}
            results = tuple(r for r in message.results if r.tool_call_id in wanted)
            if results:
                complete.append(ToolResultMessage(results=results))
        else:
            if is_open:
                close()
            complete.append(message)
            # Plain words, most of a conversation, leave nothing open.
            is_open = isinstance(message, AssistantMessage) and bool(message.tool_calls)
    close()
    return complete


def _call(call: ToolCallData) -> ToolCall:
    return parse_call(call.id, call.name, call.arguments)


def _result(result: ToolResultData) -> ToolResult:
    text = labelled(plain_result(result.result), result.content_items or ())
    return ToolResult(tool_call_id=result.call_id, result=text, is_error=result.is_error)


def plain_result(result: str) -> str:
    """Return a wire result as text: a JSON string's value, any other JSON as it is written."""
    try:
        value = msgspec.json.decode(result)
    except (msgspec.DecodeError, RecursionError):
        return result
    return value if isinstance(value, str) else result


def _described(item: MediaContent) -> dict[str, Any]:
    match item:
        case FileContent():
            kind, filename, mime_type = "file", item.filename, item.mime_type
        case ImageContent():
            kind, filename, mime_type = "image", "", f"image/{item.format}" if item.format else ""
        case AudioContent():
            kind, filename, mime_type = "audio", "", f"audio/{item.format}" if item.format else ""
        case VideoContent():
            kind, filename, mime_type = "video", "", f"video/{item.format}" if item.format else ""
    return {
        "content_id": _content_id(item),
        "kind": kind,
        "filename": filename,
        "mime_type": mime_type,
    }


def _content_id(item: MediaContent) -> str | None:
    medium = media_of(item)
    return item.content_id or (content_id_of(medium.url) if isinstance(medium, MediaUrl) else None)


class _Media:
    """The media of one request, read within MEDIA_BYTES."""

    def __init__(self, loader: MediaLoader | None, *, hears: bool) -> None:
        self._loader = loader
        self._kinds: tuple[type[MediaContent], ...] = (ImageContent, FileContent)
        if hears:
            self._kinds = (*self._kinds, AudioContent)
        self._blocks: dict[int, UserContent | None] = {}

    @property
    def active(self) -> bool:
        """Whether media are read at all."""
        return self._loader is not None

    async def read(self, history: Sequence[Message]) -> None:
        """Read what fits, the newest first."""
        if self._loader is None:
            return
        left = MEDIA_BYTES
        for message in reversed(history):
            for item in reversed(message.content_items or ()):
                if message.role == "user" and isinstance(item, self._kinds):
                    data, mime_type = await self._load(self._loader, item)
                    if 0 < len(data) <= left:
                        left -= len(data)
                        # Megabytes of base64 would hold up everything else in this process.
                        self._blocks[id(item)] = await asyncio.to_thread(
                            _sound if isinstance(item, AudioContent) else _block,
                            data,
                            mime_type,
                            _described(item)["filename"],
                        )

    async def _load(self, loader: MediaLoader, item: MediaContent) -> tuple[bytes, str]:
        """Return an item's data, and no data for what cannot be had."""
        medium = media_of(item)
        if isinstance(medium, str):
            try:
                data = await asyncio.to_thread(base64.b64decode, medium, validate=True)
            except binascii.Error:
                return b"", ""
            return data, _described(item)["mime_type"]
        content_id = _content_id(item)
        if content_id is None:
            return b"", ""
        try:
            return await loader.load(content_id)
        except LookupError:
            return b"", ""

    def blocks(self, item: MediaContent) -> list[UserContent]:
        """Return an item's name for the text, and its data when it was read and is of use."""
        if not self.active:
            return []
        named = ", ".join(f"{key}={value}" for key, value in _described(item).items() if value)
        name = TextBlock(text=f"[attachment: {named}]")
        block = self._blocks.get(id(item))
        return [name, block] if block is not None else [name]


def _sound(data: bytes, mime_type: str, _filename: str) -> UserContent | None:
    return AudioBlock(data=data, mime_type=mime_type) if mime_type.startswith("audio/") else None


def _block(data: bytes, mime_type: str, filename: str) -> UserContent | None:
    kind = _picture_type(data)
    if kind is not None or mime_type == "application/pdf":
        encoded = Base64Source(data=base64.b64encode(data).decode())
        if kind is not None:
            return ImageBlock(source=encoded, mime_type=kind)
        return DocumentBlock(source=encoded, mime_type=mime_type, title=filename or None)
    if mime_type.startswith("text/") or mime_type == "application/json":
        text = data.decode(errors="replace")
        if len(text) > DOCUMENT_CHARS:
            text = f"{text[:DOCUMENT_CHARS]}\n[cut off after {DOCUMENT_CHARS} characters]"
        return DocumentBlock(
            source=TextSource(data=text), mime_type=mime_type, title=filename or None
        )
    return None


def _picture_type(data: bytes) -> str | None:
    """Return the type of a picture that models take, by its first bytes and not by its name."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return None
