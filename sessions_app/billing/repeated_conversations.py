"""Detect requests with a tool's result that repeat the conversation of the calling answer.

A client that receives its results in the next request sends its whole history again. An answer
continues at the price that is paid only if that history is the same up to the answer, and the
client changed nothing of what the answer said. Otherwise the request asks something else.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

import uamp

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class ReturnedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A history that ends with the result of a call, without new input from the asker.

    `beginnings` has each place at which the answer that made the call may begin: the digest of the
    conversation before it, and the messages from there on.
    """

    call_id: str
    beginnings: tuple[tuple[str, tuple[uamp.Message, ...]], ...]
    tools: tuple[uamp.ToolDefinition, ...] | None
    response_format: uamp.ResponseFormat | None

    def continues(self, request: Mapping[str, Any], output: Sequence[uamp.ContentItem]) -> bool:
        """Return whether this continues the answer to a stored request, which has this output.

        The client may omit tools and the format, but not add any: the model reads their
        descriptions like part of the question.
        """
        digest = request.get("conversation")
        after = next((after for before, after in self.beginnings if before == digest), None)
        if not digest or after is None:
            return False
        tools, request_tools = msgspec.to_builtins(self.tools) or (), request.get("tools") or ()
        form = msgspec.to_builtins(self.response_format)
        return (
            all(tool in list(request_tools) for tool in tools)
            and form in (None, request.get("response_format"))
            and all(_is_part(message, output) for message in after)
        )


def digest_of(instructions: str | None, messages: Sequence[uamp.Message]) -> str:
    """Return the digest of a conversation, with the instructions of its request."""
    *_, digest = _digests(instructions, messages)
    return digest


def returned_call(
    instructions: str | None,
    messages: Sequence[uamp.Message],
    *,
    tools: tuple[uamp.ToolDefinition, ...] | None,
    response_format: uamp.ResponseFormat | None,
) -> ReturnedCall | None:
    """Return the call whose result ends a history; None if it ends otherwise."""
    last = messages[-1] if messages else None
    if last is None or last.role != "tool" or not last.tool_call_id:
        return None
    first = len(messages)
    while first and messages[first - 1].role in {"assistant", "tool"}:
        first -= 1
    digests = list(_digests(instructions, messages))
    return ReturnedCall(
        call_id=last.tool_call_id,
        beginnings=tuple(
            (digests[at], tuple(messages[at:]))
            for at in range(first, len(messages))
            if messages[at].role == "assistant"
        ),
        tools=tools,
        response_format=response_format,
    )


def _digests(instructions: str | None, messages: Sequence[uamp.Message]) -> Iterator[str]:
    """Yield the digest of the instructions alone, and then with each further message."""
    digest = hashlib.sha256(msgspec.json.encode(instructions or ""))
    yield digest.hexdigest()
    for message in messages:
        digest.update(msgspec.json.encode(_facts(message)))
        yield digest.hexdigest()


def _facts(message: uamp.Message) -> tuple[object, ...]:
    items = message.content_items or ()
    text: object = message.content or ""
    if items:
        is_text = all(isinstance(item, uamp.TextContent) for item in items)
        text = uamp.text_of(items) if is_text else items
    return (message.role, text, message.name or "", message.tool_call_id, message.tool_calls or ())


def _is_part(message: uamp.Message, output: Sequence[uamp.ContentItem]) -> bool:
    """Return whether a message is a tool's result, or repeats something of an answer's output."""
    if message.role == "tool":
        return True
    items = message.content_items or (uamp.TextContent(text=message.content or ""),)
    calls = [uamp.ToolCallContent(tool_call=call) for call in message.tool_calls or ()]
    return all(any(_repeats(item, other) for other in (None, *output)) for item in (*items, *calls))


def _repeats(item: uamp.ContentItem, stored: uamp.ContentItem | None) -> bool:
    match item, stored:
        case uamp.TextContent(text=text), uamp.TextContent(text=whole):
            return text.strip() in whole
        case uamp.TextContent(text=text), None:
            return not text.strip()
        case uamp.ThinkingContent(thinking=text), uamp.ThinkingContent(thinking=whole):
            return text.strip() in whole
        case uamp.ToolCallContent(tool_call=call), uamp.ToolCallContent(tool_call=made):
            return (call.id, call.name, _value(call)) == (made.id, made.name, _value(made))
    return item == stored


def _value(call: uamp.ToolCallData) -> object:
    """Return the arguments of a call, which clients may reformat."""
    try:
        return msgspec.json.decode(call.arguments)
    except msgspec.DecodeError:
        return call.arguments
