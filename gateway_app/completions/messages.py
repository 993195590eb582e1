"""Conversion of Chat Completions messages to UAMP messages (UAMP §8.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import msgspec

import uamp
from gateway_app.openai.errors import refused
from gateway_app.openai.request import document_of
from gateway_app.types import media

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAME: TypeAlias = Annotated[str, msgspec.Meta(max_length=uamp.DEFAULT_LIMITS.tool_name_chars)]


class _Part(msgspec.Struct, frozen=True, tag_field="type"):
    """A part of a message's content."""


class TextPart(_Part, frozen=True, tag="text"):
    """Text."""

    text: str


class RefusalPart(_Part, frozen=True, tag="refusal"):
    """The text of a model's refusal, in a history."""

    refusal: str


class ImageAddress(msgspec.Struct, frozen=True):
    """A picture: an http(s) URL, the URL of a content of this server, or a `data:` URL."""

    url: str
    detail: Literal["auto", "low", "high"] | None = None


class ImagePart(_Part, frozen=True, tag="image_url"):
    """A picture; some clients send its bare URL."""

    image_url: ImageAddress | str


class AudioData(msgspec.Struct, frozen=True):
    """A sound in base64."""

    data: str
    format: Annotated[str, msgspec.Meta(max_length=20)]


class AudioPart(_Part, frozen=True, tag="input_audio"):
    """A sound."""

    input_audio: AudioData


class FileData(msgspec.Struct, frozen=True):
    """A document: base64, a `data:` URL, or the id of a content of this server."""

    file_data: str | None = None
    file_id: str | None = None
    filename: Annotated[str, msgspec.Meta(max_length=255)] | None = None


class FilePart(_Part, frozen=True, tag="file"):
    """A document."""

    file: FileData


ContentPart: TypeAlias = TextPart | RefusalPart | ImagePart | AudioPart | FilePart


class CalledFunction(msgspec.Struct, frozen=True):
    """A function and its arguments as JSON text."""

    name: _NAME
    arguments: str


class FunctionToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call in a history."""

    id: str
    type: Literal["function"] = "function"
    function: CalledFunction


class CompletionMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message of the conversation; `function` is the older name of `tool`."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | tuple[ContentPart, ...] | None = None
    name: str | None = None
    refusal: str | None = None
    tool_call_id: str | None = None
    tool_calls: tuple[FunctionToolCall, ...] | None = None
    function_call: CalledFunction | None = None
    audio: Any = None


def uamp_messages(messages: Sequence[CompletionMessage]) -> tuple[uamp.Message, ...]:
    """Convert the messages of a request; raises RemoteProtocolError with the place of a mistake."""
    converted: list[uamp.Message] = []
    # Calls in the older form have no id: the next result of that function answers them.
    called: dict[str, str] = {}
    for index, message in enumerate(messages):
        place = f"messages[{index}]"
        if message.audio is not None:
            raise refused(f"{place}.audio", "No answer of this server has audio to refer to.")
        calls = [_call(call.id, call.function) for call in message.tool_calls or ()]
        if message.function_call is not None:
            called[message.function_call.name] = f"function_{index}"
            calls.append(_call(f"function_{index}", message.function_call))
        call_id = message.tool_call_id
        if message.role == "function":
            call_id = called.get(message.name or "")
        if message.role in {"tool", "function"} and call_id is None:
            field = "tool_call_id" if message.role == "tool" else "name"
            raise refused(
                f"{place}.{field}", "The result does not match any call in this conversation."
            )
        content, items = _content(message, place)
        converted.append(
            uamp.Message(
                role=_ROLES.get(message.role, message.role),  # type: ignore[arg-type]  # of UAMP
                content=content,
                content_items=items,
                name=None if message.role == "function" else message.name,
                tool_call_id=call_id,
                tool_calls=tuple(calls) or None,
            )
        )
    return tuple(converted)


_ROLES: Final = {"developer": "system", "function": "tool"}


def _call(call_id: str, function: CalledFunction) -> uamp.ToolCallData:
    return uamp.ToolCallData(id=call_id, name=function.name, arguments=function.arguments)


def _content(
    message: CompletionMessage, place: str
) -> tuple[str, tuple[uamp.ContentItem, ...] | None]:
    """Return the text of a message, and all its items if any is not text."""
    parts = message.content if message.content is not None else ()
    if isinstance(parts, str):
        parts = (TextPart(parts),)
    if message.refusal:
        parts = (*parts, RefusalPart(message.refusal))
    items = tuple(_item(part, f"{place}.content[{index}]") for index, part in enumerate(parts))
    is_text = all(isinstance(item, uamp.TextContent) for item in items)
    return uamp.text_of(items), None if is_text else items


def _item(part: ContentPart, place: str) -> uamp.ContentItem:
    match part:
        case TextPart():
            return uamp.TextContent(text=part.text)
        case RefusalPart():
            return uamp.TextContent(text=part.refusal)
        case ImagePart(image_url=image):
            address = ImageAddress(image) if isinstance(image, str) else image
            return uamp.ImageContent(image=media.medium_of(address.url), detail=address.detail)
        case AudioPart(input_audio=sound):
            return uamp.AudioContent(audio=media.medium_of(sound.data), format=sound.format)
        case FilePart():
            file = part.file
            return document_of(
                f"{place}.file",
                file_id=file.file_id,
                file_data=file.file_data,
                filename=file.filename,
            )
