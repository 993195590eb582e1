"""The input items of OpenAI's Responses API, and their conversion to messages (UAMP §8.5)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import msgspec

import uamp
from gateway_app.openai.errors import refused, unsupported
from gateway_app.openai.request import CallId, content_of, document_of
from gateway_app.openai_responses.tools import custom_arguments, function_name
from gateway_app.types import media
from gateway_app.types.message_origins import MessageOrigin
from uamp import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ItemId: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
_Name: TypeAlias = Annotated[
    str, msgspec.Meta(min_length=1, max_length=uamp.DEFAULT_LIMITS.tool_name_chars)
]
# The ids of output items, in the format of `output.item_id`.
_ANSWERED: Final = re.compile(r"(?:msg|fc|ctc)_([0-9a-f]{32})_[0-9]+")
_CALLS: Final = frozenset({"function_call", "custom_tool_call"})
_OUTPUTS: Final = frozenset({"function_call_output", "custom_tool_call_output"})
_TEXTS: Final = frozenset({"input_text", "output_text", "text"})
_NEEDED: Final = {
    "message": ("role", "content"),
    "function_call": ("call_id", "name", "arguments"),
    "function_call_output": ("call_id", "output"),
    "custom_tool_call": ("call_id", "name", "input"),
    "custom_tool_call_output": ("call_id", "output"),
    "reasoning": (),
    "compaction": ("encrypted_content",),
    "item_reference": ("id",),
}


class ItemPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a message or of a function's output."""

    type: Annotated[str, msgspec.Meta(max_length=64)]
    text: str | None = None
    refusal: str | None = None
    image_url: str | None = None
    detail: Literal["auto", "low", "high", "original"] | None = None
    file_id: str | None = None
    file_data: str | None = None
    file_url: str | None = None
    filename: Annotated[str, msgspec.Meta(max_length=255)] | None = None


_Parts: TypeAlias = Annotated[
    tuple[ItemPart, ...], msgspec.Meta(max_length=uamp.DEFAULT_LIMITS.messages)
]


class InputItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item of a conversation; a message may omit its type."""

    type: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    id: ItemId | None = None
    role: Literal["user", "assistant", "system", "developer"] | None = None
    content: str | _Parts | None = None
    call_id: CallId | None = None
    name: _Name | None = None
    namespace: _Name | None = None
    arguments: str | None = None
    input: str | None = None
    output: str | _Parts | None = None
    encrypted_content: str | None = None

    @property
    def kind(self) -> str:
        """The type of the item; an item with only an id is a reference."""
        return self.type or ("message" if self.role or not self.id else "item_reference")

    def check(self, place: str) -> None:
        """Raise RemoteProtocolError for an unknown type or a missing member."""
        needed = _NEEDED.get(self.kind)
        if needed is None:
            raise unsupported(
                f"{place}.type",
                f"Items of type {self.kind!r} are not supported. Agents use their own tools;"
                " clients can declare functions.",
            )
        if missing := next((name for name in needed if getattr(self, name) is None), None):
            raise refused(f"{place}.{missing}", f"An item of type {self.kind} must have {missing}.")


def messages_of(
    items: Sequence[InputItem], *, after: int = 0, place: str = "input"
) -> tuple[tuple[uamp.Message, ...], tuple[MessageOrigin, ...]]:
    """Convert items to messages; consecutive calls become one assistant message.

    Reasoning is dropped: an answer that ended in calls to the client's tools is restored in full,
    and models see no other earlier thoughts. Also returns the messages that come from answers,
    recognised by their items' ids; `after` is the number of messages before the first one, `place`
    the parameter with the items. Raises RemoteProtocolError with the place of a mistake.
    """
    messages: list[uamp.Message] = []
    origins: dict[int, MessageOrigin] = {}
    media_of_results: list[uamp.ContentItem] = []
    for index, item in enumerate(items):
        at = f"{place}[{index}]"
        item.check(at)
        if item.kind not in _OUTPUTS:
            messages += _shown_by_user(media_of_results)
            media_of_results = []
        match item.kind:
            case "function_call" | "custom_tool_call":
                _add_call(messages, item)
            case "function_call_output" | "custom_tool_call_output":
                result, others = _result(item, f"{at}.output")
                messages.append(result)
                media_of_results += others
            case "message":
                messages.append(_message(item, at))
            case "item_reference":
                raise refused(at, f"You have no item {item.id!r}.", ErrorCode.CONTENT_NOT_FOUND)
            case "compaction":
                raise unsupported(at, "A chat keeps its conversation whole. Leave the item out.")
        answered = _ANSWERED.fullmatch(item.id or "")
        if answered and (item.kind in _CALLS or item.role == "assistant"):
            number = after + len(messages) - 1
            origins[number] = MessageOrigin(number, f"resp_{answered[1]}", is_answer=True)
    messages += _shown_by_user(media_of_results)
    return tuple(messages), tuple(origins.values())


def _add_call(messages: list[uamp.Message], item: InputItem) -> None:
    is_custom = item.kind == "custom_tool_call"
    call = uamp.ToolCallData(
        id=item.call_id or "",
        name=function_name(item.name or "", item.namespace),
        arguments=custom_arguments(item.input or "") if is_custom else item.arguments or "",
    )
    if messages and messages[-1].role == "assistant" and messages[-1].content_items is None:
        last = messages.pop()
    else:
        last = uamp.Message(role="assistant", content="")
    calls = (*(last.tool_calls or ()), call)
    messages.append(msgspec.structs.replace(last, tool_calls=calls))


def check_results(before: Iterable[uamp.Message], messages: Sequence[uamp.Message]) -> None:
    """Raise RemoteProtocolError unless the results and calls of a conversation match.

    Each result in `messages` must follow its call, and each call must have its result.
    """
    called = {call for message in before for call in _calls(message)}
    waiting: set[str] = set()
    for message in messages:
        calls, results = _calls(message), _results(message)
        called |= calls
        if unknown := results - called:
            raise refused(
                "input", f"No tool call found for function call output with call_id {min(unknown)}."
            )
        waiting = (waiting | calls) - results
    if waiting:
        raise refused("input", f"No tool output found for function call {min(waiting)}.")


def _calls(message: uamp.Message) -> set[str]:
    items = message.content_items or ()
    return {
        *(call.id for call in message.tool_calls or ()),
        *(item.tool_call.id for item in items if isinstance(item, uamp.ToolCallContent)),
    }


def _results(message: uamp.Message) -> set[str]:
    items = message.content_items or ()
    return {
        *([message.tool_call_id] if message.tool_call_id else []),
        *(item.tool_result.call_id for item in items if isinstance(item, uamp.ToolResultContent)),
    }


def _result(item: InputItem, place: str) -> tuple[uamp.Message, list[uamp.ContentItem]]:
    """Return a call's result and its media; raises RemoteProtocolError for other content."""
    output = item.output or ""
    parts = (ItemPart(type="input_text", text=output),) if isinstance(output, str) else output
    items = [_item(part, f"{place}[{index}]") for index, part in enumerate(parts)]
    text = "\n".join(content.text for content in items if isinstance(content, uamp.TextContent))
    result = uamp.Message(role="tool", content=text, tool_call_id=item.call_id)
    return result, [content for content in items if not isinstance(content, uamp.TextContent)]


def _shown_by_user(media_of_results: Sequence[uamp.ContentItem]) -> list[uamp.Message]:
    """Return the message in which the user shows media of results: models accept none in results.

    It follows all results of an answer, which have to come right after their calls.
    """
    if not media_of_results:
        return []
    return [uamp.Message(role="user", content="", content_items=tuple(media_of_results))]


def _message(item: InputItem, place: str) -> uamp.Message:
    content = item.content or ""
    parts = (ItemPart(type="input_text", text=content),) if isinstance(content, str) else content
    items = tuple(_item(part, f"{place}.content[{index}]") for index, part in enumerate(parts))
    is_text = all(isinstance(part_item, uamp.TextContent) for part_item in items)
    role = "system" if item.role == "developer" else item.role or "user"
    return uamp.Message(
        role=role, content=uamp.text_of(items), content_items=None if is_text else items
    )


def _item(part: ItemPart, place: str) -> uamp.ContentItem:
    if part.type in _TEXTS or part.type == "refusal":
        text = part.refusal if part.type == "refusal" else part.text
        if text is None:
            raise refused(f"{place}.text", "The part has no text.")
        return uamp.TextContent(text=text)
    if part.type == "input_image":
        if part.file_id is not None:
            medium = media.medium_of(content_of(f"{place}.file_id", part.file_id))
        elif part.image_url:
            medium = media.medium_of(part.image_url)
        else:
            raise refused(f"{place}.image_url", "A picture needs an image_url or a file_id.")
        return uamp.ImageContent(image=medium, detail=part.detail)
    if part.type == "input_file":
        return document_of(
            place,
            file_id=part.file_id,
            file_data=part.file_url or part.file_data,
            filename=part.filename,
        )
    raise unsupported(f"{place}.type", f"Parts of type {part.type!r} are not supported.")
