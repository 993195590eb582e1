"""Content blocks of Anthropic's Messages API, and their conversion to messages (UAMP §8.5)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec

import uamp
from gateway_app.openai.errors import refused
from gateway_app.openai.request import CallId, content_of
from gateway_app.types import media

if TYPE_CHECKING:
    from collections.abc import Sequence

_Name: TypeAlias = Annotated[
    str, msgspec.Meta(min_length=1, max_length=uamp.DEFAULT_LIMITS.tool_name_chars)
]
_MediaType: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[\w.+-]{1,127}/[\w.+-]{1,127}$")]


class _BlockParam(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """A block, or a source of data. Members that are missing here are ignored."""


class Base64SourceParam(_BlockParam, frozen=True, kw_only=True, tag="base64"):
    """A medium in base64."""

    media_type: _MediaType
    data: str


class UrlSourceParam(_BlockParam, frozen=True, kw_only=True, tag="url"):
    """A medium at an address; a picture may also be a `data:` URL."""

    url: str


class FileSourceParam(_BlockParam, frozen=True, kw_only=True, tag="file"):
    """A stored content of this server."""

    file_id: Annotated[str, msgspec.Meta(max_length=64)]


class TextSourceParam(_BlockParam, frozen=True, kw_only=True, tag="text"):
    """A document that is plain text."""

    data: str


class TextBlockParam(_BlockParam, frozen=True, kw_only=True, tag="text"):
    """Text."""

    text: str


class ContentSourceParam(_BlockParam, frozen=True, kw_only=True, tag="content"):
    """A document that consists of text blocks."""

    content: str | tuple[TextBlockParam, ...]


class ImageBlockParam(_BlockParam, frozen=True, kw_only=True, tag="image"):
    """A picture."""

    source: Base64SourceParam | UrlSourceParam | FileSourceParam


class DocumentBlockParam(_BlockParam, frozen=True, kw_only=True, tag="document"):
    """A document."""

    source: (
        Base64SourceParam | UrlSourceParam | FileSourceParam | TextSourceParam | ContentSourceParam
    )
    title: Annotated[str, msgspec.Meta(max_length=255)] | None = None
    context: str | None = None


class SearchResultBlockParam(_BlockParam, frozen=True, kw_only=True, tag="search_result"):
    """A search result of the client, which is text with its source and title."""

    source: str
    title: str
    content: tuple[TextBlockParam, ...]


class ToolUseBlockParam(_BlockParam, frozen=True, kw_only=True, tag="tool_use"):
    """A call of one of the client's tools."""

    id: CallId
    name: _Name
    input: dict[str, Any]


_Shown: TypeAlias = TextBlockParam | ImageBlockParam | DocumentBlockParam | SearchResultBlockParam


class ToolResultBlockParam(_BlockParam, frozen=True, kw_only=True, tag="tool_result"):
    """The result of a call; its media follow it as media of the user."""

    tool_use_id: CallId
    content: str | tuple[_Shown, ...] | None = None
    is_error: bool | None = None


class ThinkingBlockParam(_BlockParam, frozen=True, kw_only=True, tag="thinking"):
    """An earlier thought, which is dropped: models see only their own thoughts."""

    thinking: str


class RedactedThinkingBlockParam(_BlockParam, frozen=True, kw_only=True, tag="redacted_thinking"):
    """An earlier hidden thought, which is dropped."""

    data: str


Block: TypeAlias = (
    TextBlockParam
    | ImageBlockParam
    | DocumentBlockParam
    | SearchResultBlockParam
    | ToolUseBlockParam
    | ToolResultBlockParam
    | ThinkingBlockParam
    | RedactedThinkingBlockParam
)
_Blocks: TypeAlias = Annotated[
    tuple[Block, ...], msgspec.Meta(max_length=uamp.DEFAULT_LIMITS.messages)
]


class MessageParam(msgspec.Struct, frozen=True, kw_only=True):
    """One message of the conversation."""

    role: Literal["user", "assistant", "system"]
    content: str | _Blocks


def messages_of(messages: Sequence[MessageParam]) -> tuple[uamp.Message, ...]:
    """Convert a conversation; raises RemoteProtocolError with the place of a mistake."""
    converted: list[uamp.Message] = []
    called: set[str] = set()
    for index, message in enumerate(messages):
        place = f"messages.{index}.content"
        content = message.content
        blocks = (TextBlockParam(text=content),) if isinstance(content, str) else content
        if message.role == "assistant":
            calls = _calls(blocks)
            called |= {call.id for call in calls}
            converted.append(_agent_message(blocks, calls, place))
            continue
        results, rest = _results(blocks, called, place)
        converted += results
        if rest or not results:
            items = tuple(rest)
            converted.append(
                uamp.Message(
                    role=message.role,
                    content=uamp.text_of(items),
                    content_items=None if _is_text(items) else items,
                )
            )
    return tuple(converted)


def _is_text(items: Sequence[uamp.ContentItem]) -> bool:
    return all(isinstance(item, uamp.TextContent) for item in items)


def _calls(blocks: Sequence[Block]) -> tuple[uamp.ToolCallData, ...]:
    """Return the calls of an answer, whose arguments keep numbers of any size."""
    return tuple(
        uamp.ToolCallData(
            id=block.id,
            name=block.name,
            arguments=json.dumps(block.input, ensure_ascii=False, separators=(",", ":")),
        )
        for block in blocks
        if isinstance(block, ToolUseBlockParam)
    )


def _agent_message(
    blocks: Sequence[Block], calls: tuple[uamp.ToolCallData, ...], place: str
) -> uamp.Message:
    texts: list[uamp.ContentItem] = []
    for index, block in enumerate(blocks):
        match block:
            case TextBlockParam():
                texts.append(uamp.TextContent(text=block.text))
            case ToolUseBlockParam() | ThinkingBlockParam() | RedactedThinkingBlockParam():
                pass
            case _:
                raise refused(
                    f"{place}.{index}.type",
                    "Assistant messages cannot contain blocks of this type.",
                )
    return uamp.Message(
        role="assistant", content=uamp.text_of(tuple(texts)), tool_calls=calls or None
    )


def _results(
    blocks: Sequence[Block], called: set[str], place: str
) -> tuple[list[uamp.Message], list[uamp.ContentItem]]:
    """Return the tool results of a user's message, and its other content after them."""
    results: list[uamp.Message] = []
    rest: list[uamp.ContentItem] = []
    for index, block in enumerate(blocks):
        at = f"{place}.{index}"
        match block:
            case ToolResultBlockParam():
                if block.tool_use_id not in called:
                    raise refused(
                        f"{at}.tool_use_id", f"No earlier message calls {block.tool_use_id!r}."
                    )
                result, media_items = _result(block, at)
                results.append(result)
                rest += media_items
            case (
                TextBlockParam()
                | ImageBlockParam()
                | DocumentBlockParam()
                | SearchResultBlockParam()
            ):
                rest.append(_item(block, at))
            case _:
                raise refused(f"{at}.type", "Only an assistant has such a block.")
    return results, rest


def _result(block: ToolResultBlockParam, place: str) -> tuple[uamp.Message, list[uamp.ContentItem]]:
    """Return a result and its media, which models accept only from a user."""
    content = block.content or ()
    blocks = (TextBlockParam(text=content),) if isinstance(content, str) else content
    items = [_item(inner, f"{place}.content.{index}") for index, inner in enumerate(blocks)]
    text = "\n".join(item.text for item in items if isinstance(item, uamp.TextContent))
    failure = (
        uamp.ToolResultContent(
            tool_result=uamp.ToolResultData(call_id=block.tool_use_id, result=text, is_error=True)
        ),
    )
    message = uamp.Message(
        role="tool",
        content=text,
        tool_call_id=block.tool_use_id,
        content_items=failure if block.is_error else None,
    )
    return message, [item for item in items if not isinstance(item, uamp.TextContent)]


def _item(block: _Shown, place: str) -> uamp.ContentItem:
    match block:
        case TextBlockParam():
            return uamp.TextContent(text=block.text)
        case ImageBlockParam():
            return uamp.ImageContent(image=media.medium_of(_address(block.source, place)))
        case SearchResultBlockParam():
            texts = "\n".join(part.text for part in block.content)
            return uamp.TextContent(text=f"{block.title} ({block.source})\n{texts}")
        case DocumentBlockParam(source=TextSourceParam(data=text)):
            return uamp.TextContent(text=_titled(block, text))
        case DocumentBlockParam(source=ContentSourceParam(content=content)):
            text = content if isinstance(content, str) else "\n".join(part.text for part in content)
            return uamp.TextContent(text=_titled(block, text))
        case DocumentBlockParam(
            source=Base64SourceParam() | UrlSourceParam() | FileSourceParam() as source
        ):
            return media.file_item(_address(source, place), block.title)
    raise AssertionError(block)


def _titled(block: DocumentBlockParam, text: str) -> str:
    return "\n\n".join(part for part in (block.title, block.context, text) if part)


def _address(source: Base64SourceParam | UrlSourceParam | FileSourceParam, place: str) -> str:
    """Return a medium as a URL; raises RemoteProtocolError for an unknown file id."""
    match source:
        case Base64SourceParam():
            return f"data:{source.media_type};base64,{source.data}"
        case UrlSourceParam():
            return source.url
    return content_of(f"{place}.source.file_id", source.file_id)
