"""Conversion of a stored conversation for a model: UAMP messages to upp messages.

Everything in a conversation is data labelled with its origin. The model reads the words of other
agents like a user's, never as its own and never as instructions. A call without a result gets one,
because providers reject such a history otherwise.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from uamp.content_labels import labelled
from uamp.types.content import (
    ContentItem,
    MediaContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolCallData,
    ToolResultContent,
    ToolResultData,
)
from uap.uamp_adapter.media import MediaLoader, RequestMedia, description_of
from upp import (
    AssistantMessage,
    ReasoningBlock,
    TextBlock,
    ToolCall,
    ToolResult,
    ToolResultMessage,
    UserMessage,
)
from upp import Message as ModelMessage
from upp.conversation.messages import AssistantContent, UserContent, unanswered_calls
from upp.tools import parse_call

"""The most media that one request may carry; the newest ones come first."""
CONTINUE = (
    "Your answer was interrupted after the text above. Go on exactly where it stopped, and repeat"
    " nothing."
)
"""The prompt for a model whose own unfinished answer ends the conversation."""
NOTHING_NEW = "Nothing was said since your last answer. Answer again, or add what is missing."
"""The prompt for a model that is called again after its own complete answer."""


class RememberedMessage(Message, frozen=True, kw_only=True):
    """A message cached between turns, with its converted form per agent name.

    Most of a turn's conversation is unchanged from the previous turn. Converted messages keep their
    ids.
    """

    sent: dict[str, ModelMessage] = msgspec.field(default_factory=dict)


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation for a model: its messages, and the system texts among them."""

    messages: tuple[ModelMessage, ...]
    system: tuple[str, ...] = ()


def attachments_of(message: ModelMessage) -> list[dict[str, Any]]:
    """Return the media of a converted message as {content_id, kind, filename, mime_type}."""
    attachments: list[dict[str, Any]] = message.metadata.get("uamp", {}).get("attachments", [])
    return attachments


async def to_conversation(
    history: Sequence[Message],
    *,
    agent_name: str,
    media: MediaLoader | None = None,
    accepts_audio: bool = False,
    names_audio: bool = True,
) -> Conversation:
    """Convert a conversation for the agent with a name.

    With a `media` loader, attachments are named in the text and read for the model, and speakers
    are named if there are several. Without one, the text is unchanged.
    """
    budget = RequestMedia(media, accepts_audio=accepts_audio, names_audio=names_audio)
    await budget.read(history)
    several = media is not None and _speakers(history, agent_name)
    # Plain text leaves no call open.
    is_plain = True
    messages: list[ModelMessage] = []
    system: list[str] = []
    for message in history:
        if not message.content_items and not message.tool_calls and not several:
            # Most of a long conversation is plain text.
            plain = _plain(message, agent_name)
            if plain is not None:
                messages.append(plain)
                continue
        is_plain = False
        if message.role == "system":
            system.append(message.content or "")
        elif message.role == "tool":
            messages.extend(_tool_message(message))
        elif message.role == "assistant" and message.name in (None, agent_name):
            messages.extend(_said_by_agent(message))
        else:
            messages.append(_said_by_others(message, budget, labelled=several))
    if not is_plain:
        messages = _complete(messages)
    return Conversation(messages=tuple(messages), system=tuple(system))


def open_ended(
    messages: Sequence[ModelMessage], *, resumes: bool, scripted: bool
) -> tuple[ModelMessage, ...]:
    """Return a conversation that the agent can answer.

    Vendors reject conversations that end in the agent's own words, so a prompt is appended;
    `resumes` means that those words were cut off. A script gets no prompt; its words are marked as
    an unfinished answer.
    """
    message = messages[-1] if messages else None
    if not isinstance(message, AssistantMessage) or message.tool_calls:
        return tuple(messages)
    if scripted:
        mark = {**message.metadata, "uap": {"unfinished": True}}
        return (*messages[:-1], msgspec.structs.replace(message, metadata=mark))
    return (*messages, UserMessage(content=CONTINUE if resumes else NOTHING_NEW))


def _plain(message: Message, agent_name: str) -> ModelMessage | None:
    """Convert a message that is plain text of the user or the agent itself; None for others."""
    converted = message.sent if isinstance(message, RememberedMessage) else {}
    if (cached := converted.get(agent_name)) is not None:
        return cached
    plain: ModelMessage | None = None
    if message.content and message.role == "user":
        plain = UserMessage(content=(TextBlock(text=message.content),))
    elif message.content and message.role == "assistant" and message.name in (None, agent_name):
        plain = AssistantMessage(content=(TextBlock(text=message.content),))
    if plain is not None:
        converted[agent_name] = plain
    return plain


def output_messages(items: Sequence[ContentItem]) -> list[ModelMessage]:
    """Convert an answer's content items to model messages.

    Text after a result begins a new message, and calls without a result stay that way. Media are
    left out: they were shown, not said.
    """
    messages: list[ModelMessage] = []
    content: list[AssistantContent] = []
    calls: list[ToolCall] = []
    results: list[ToolResult] = []

    def flush() -> None:
        if content or calls:
            messages.append(AssistantMessage(content=tuple(content), tool_calls=tuple(calls)))
        if results:
            # Results are shown as they arrive; the model gets them in the order of its calls.
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


def _said_by_others(message: Message, media: "RequestMedia", *, labelled: bool) -> UserMessage:
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
    metadata = {"uamp": {"attachments": [description_of(item) for item in attached]}}
    return UserMessage(
        content=tuple(content) or (TextBlock(text=""),), metadata=metadata if attached else {}
    )


def _tool_message(message: Message) -> list[ModelMessage]:
    if message.tool_call_id is None:
        return []
    result = ToolResult(
        tool_call_id=message.tool_call_id,
        result=message.content or "",
        is_error=any(
            isinstance(item, ToolResultContent) and item.tool_result.is_error
            for item in message.content_items or ()
        ),
    )
    return [ToolResultMessage(results=(result,))]


def _complete(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Return the messages with one result for each call and no result without a call."""
    complete: list[ModelMessage] = []
    is_open = False

    def close() -> None:
        missing = unanswered_calls(complete)
        if missing:
            text = "The call was interrupted and has no result."
            complete.append(
                ToolResultMessage(
                    results=tuple(
                        ToolResult(tool_call_id=c.tool_call_id, result=text, is_error=True)
                        for c in missing
                    )
                )
            )

    for message in messages:
        if isinstance(message, ToolResultMessage):
            open_ids = {call.tool_call_id for call in unanswered_calls(complete)}
            results = tuple(r for r in message.results if r.tool_call_id in open_ids)
            if results:
                complete.append(ToolResultMessage(results=results))
        else:
            if is_open:
                close()
            complete.append(message)
            # Plain text, most of a conversation, leaves no call open.
            is_open = isinstance(message, AssistantMessage) and bool(message.tool_calls)
    close()
    return complete


def _call(call: ToolCallData) -> ToolCall:
    return parse_call(call.id, call.name, call.arguments)


def _result(result: ToolResultData) -> ToolResult:
    text = labelled(plain_result(result.result), result.content_items or ())
    return ToolResult(tool_call_id=result.call_id, result=text, is_error=result.is_error)


def plain_result(result: str) -> str:
    """Decode a result from the wire: a JSON string's value; any other JSON stays as it is."""
    try:
        value = msgspec.json.decode(result)
    except (msgspec.DecodeError, RecursionError):
        return result
    return value if isinstance(value, str) else result
