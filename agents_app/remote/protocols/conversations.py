"""The conversation sent to a remote agent, as UAMP messages or as a single text.

A protocol whose requests have no history gets the whole conversation in one message, labelled with
the speakers: the other side keeps no state of this chat between requests.
"""

import base64
from collections.abc import Iterable, Sequence

import msgspec

from uamp.types.content import (
    ContentItem,
    FileContent,
    ImageContent,
    Message,
    TextContent,
    ToolCallData,
)
from upp import (
    AssistantMessage,
    Base64Source,
    BytesSource,
    DocumentBlock,
    ImageBlock,
    LLMRequest,
    TextBlock,
    TextSource,
    ToolResultMessage,
    UrlSource,
    UserMessage,
)
from upp import Message as ModelMessage
from upp.conversation.messages import UserContent

_BEFORE = "The conversation so far:"
_NOW = "Answer this:"


def uamp_messages(messages: Iterable[ModelMessage]) -> list[Message]:
    """Convert the messages of a request to UAMP messages (§8.5), with media as base64."""
    output: list[Message] = []
    for message in messages:
        if isinstance(message, UserMessage):
            output.append(_of_user(message))
        elif isinstance(message, AssistantMessage):
            calls = tuple(
                ToolCallData(
                    id=call.tool_call_id, name=call.tool_name, arguments=json_of(call.arguments)
                )
                for call in message.tool_calls
            )
            if message.text or calls:
                output.append(
                    Message(
                        role="assistant", content=message.text or None, tool_calls=calls or None
                    )
                )
        else:
            output.extend(
                Message(
                    role="tool",
                    tool_call_id=result.tool_call_id,
                    content=result_text(result.result),
                )
                for result in message.results
            )
    return output


def one_text(request: LLMRequest) -> str:
    """Return the instructions and the conversation of a request as one text."""
    *before, last = list(_lines(request.messages)) or [("", "")]
    parts = [request.system] if request.system else []
    if before:
        transcript = "\n\n".join(f"{who}: {text}" for who, text in before)
        parts += [f"{_BEFORE}\n\n{transcript}", _NOW]
    return "\n\n".join([*parts, last[1]])


def last_media(messages: Sequence[ModelMessage]) -> list[ImageBlock | DocumentBlock]:
    """Return the pictures and documents of the last user message."""
    for message in reversed(messages):
        if isinstance(message, UserMessage):
            return [
                block for block in message.content if isinstance(block, ImageBlock | DocumentBlock)
            ]
    return []


def base64_of(block: ImageBlock | DocumentBlock) -> tuple[str, str]:
    """Return a media item as base64 data and "", or as "" and its URL."""
    match block.source:
        case Base64Source(data=data):
            return data, ""
        case BytesSource(data=data):
            return base64.b64encode(data).decode(), ""
        case TextSource(data=text):
            return base64.b64encode(text.encode()).decode(), ""
        case UrlSource(url=url):
            return "", url


def json_of(value: object) -> str:
    """Encode a value as JSON text."""
    return msgspec.json.encode(value).decode()


def result_text(result: object) -> str:
    """Return a tool's result as text."""
    return result if isinstance(result, str) else json_of(result)


def _lines(messages: Iterable[ModelMessage]) -> Iterable[tuple[str, str]]:
    for message in messages:
        if isinstance(message, UserMessage):
            yield "User", "\n".join(_texts(message.content))
        elif isinstance(message, AssistantMessage):
            if message.text:
                yield "You", message.text
        elif isinstance(message, ToolResultMessage):
            for result in message.results:
                yield "Result of a tool", result_text(result.result)


def _texts(content: Iterable[UserContent]) -> Iterable[str]:
    for block in content:
        if isinstance(block, TextBlock):
            yield block.text


def _of_user(message: UserMessage) -> Message:
    items: list[ContentItem] = []
    for block in message.content:
        match block:
            case TextBlock(text=text):
                items.append(TextContent(text=text))
            case ImageBlock():
                data, url = base64_of(block)
                kind = block.mime_type.partition("/")[2]
                items.append(ImageContent(image=data or url, format=kind))
            case DocumentBlock():
                data, url = base64_of(block)
                items.append(
                    FileContent(
                        file=data or url,
                        filename=block.title or "document",
                        mime_type=block.mime_type,
                    )
                )
            case _:
                pass
    if all(isinstance(item, TextContent) for item in items):
        return Message(role="user", content="\n".join(_texts(message.content)))
    return Message(role="user", content_items=tuple(items))
