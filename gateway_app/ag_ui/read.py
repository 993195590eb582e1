"""The input of an AG-UI run, and the turn that it starts."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec

import uamp
from gateway_app.types.client_turn import ClientTurn
from uamp import ErrorCode, RemoteProtocolError
from uamp.types.bounds import Count
from uamp.types.inline_media import is_data_url, media_type_of

Id: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]

STATE_VERSION = "stateVersion"
"""The member of `forwardedProps` that names the state version that the client changed."""


class _Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base class of client input; unknown members are ignored."""


class InputContentSource(_Wire, frozen=True):
    """The bytes of a medium: base64 text, a URL, or a file stored by a vendor."""

    type: Literal["data", "url", "file"]
    value: str
    mime_type: str | None = None


class InputContent(_Wire, frozen=True):
    """A part of a message: text, or a medium from a source.

    `binary` is the only medium type before AG-UI 1.0, and holds its data or URL directly.
    """

    type: Literal["text", "image", "audio", "video", "document", "binary"]
    text: str = ""
    source: InputContentSource | None = None
    data: str | None = None
    url: str | None = None
    mime_type: str | None = None
    filename: Annotated[str, msgspec.Meta(max_length=255)] | None = None

    @property
    def medium(self) -> InputContentSource | None:
        """The source of the bytes of the part; None if not given."""
        if self.type != "binary":
            return self.source
        value = self.data or self.url
        if value is None:
            return None
        kind: Literal["data", "url"] = "data" if self.data else "url"
        return InputContentSource(type=kind, value=value, mime_type=self.mime_type)


class Function(_Wire, frozen=True):
    """The function of a call."""

    name: str
    arguments: str


class ThreadToolCall(_Wire, frozen=True):
    """A tool call in an assistant message."""

    id: Id
    function: Function


class ThreadMessage(_Wire, frozen=True):
    """A message of the thread."""

    id: Id
    role: Literal["developer", "system", "user", "assistant", "tool", "reasoning", "activity"]
    content: str | tuple[InputContent, ...] | dict[str, Any] | None = None
    name: str | None = None
    tool_calls: tuple[ThreadToolCall, ...] | None = None
    tool_call_id: str | None = None


class FrontendTool(_Wire, frozen=True):
    """A tool that the client runs."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    description: str = ""
    parameters: dict[str, Any] | None = None


class Context(_Wire, frozen=True):
    """A fact that the page provides to the agent."""

    description: str
    value: str


class InterruptAnswer(_Wire, frozen=True):
    """The answer to an interrupt."""

    interrupt_id: Id
    status: Literal["resolved", "cancelled"]
    payload: Any = None


class RunInput(_Wire, frozen=True):
    """The body of a run (RunAgentInput)."""

    thread_id: Id
    run_id: Id
    parent_run_id: Id | None = None
    messages: Annotated[tuple[ThreadMessage, ...], msgspec.Meta(max_length=10_000)] = ()
    tools: tuple[FrontendTool, ...] | None = None
    context: tuple[Context, ...] | None = None
    state: dict[str, Any] | None = None
    forwarded_props: Any = None
    resume: Annotated[tuple[InterruptAnswer, ...], msgspec.Meta(max_length=100)] | None = None


def turn_of(run: RunInput, *, agent: str | None, chat: str | None) -> ClientTurn:
    """Return the turn that a run starts; raises RemoteProtocolError for a medium without bytes.

    The messages of the run are the conversation, unless the run is in a chat: then the chat holds
    the conversation and receives the run's last message.
    """
    messages = [_message(message) for message in run.messages if message.role in _ROLES]
    inputs = _state_of(run)
    if chat is not None:
        inputs, messages = (*inputs, _last_text(messages)), []
    elif run.context:
        facts = "\n".join(f"{fact.description}: {fact.value}" for fact in run.context)
        messages.insert(0, uamp.Message(role="system", content=facts))
    tools = tuple(
        uamp.ToolDefinition(
            function=uamp.FunctionDefinition(
                name=tool.name, description=tool.description, parameters=tool.parameters
            )
        )
        for tool in run.tools or ()
    )
    return ClientTurn(
        session=uamp.SessionCreate(agent=agent, chat=chat),
        inputs=inputs,
        response=uamp.ResponseCreate(
            response=uamp.ResponseConfig(
                messages=None if chat is not None else tuple(messages),
                tools=tools or None,
                client_tools="end",
            ),
        ),
        thread=run.thread_id,
        shares_state=True,
    )


def thread_of(run: RunInput, *, agent: str | None, chat: str | None) -> ClientTurn:
    """Return a turn that identifies the thread of a run, and requests nothing."""
    return ClientTurn(
        session=uamp.SessionCreate(agent=agent, chat=chat),
        response=uamp.ResponseCreate(),
        thread=run.thread_id,
    )


_ROLES: dict[str, uamp.Role] = {
    "developer": "system",
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}


def _state_of(run: RunInput) -> tuple[uamp.InputEvent | uamp.StateUpdate, ...]:
    """Return the state change that a run carries.

    An empty state means that the client does not know the thread's state, and changes nothing.
    """
    if not run.state:
        return ()
    props = run.forwarded_props if isinstance(run.forwarded_props, dict) else {}
    version = props.get(STATE_VERSION)
    try:
        base_version = msgspec.convert(version, Count | None)
    except msgspec.ValidationError:
        raise invalid(f"`forwardedProps.{STATE_VERSION}` must be a version number.") from None
    return (uamp.StateUpdate(state=run.state, version=base_version),)


def _message(message: ThreadMessage) -> uamp.Message:
    content = message.content
    items = tuple(_item(part) for part in content) if isinstance(content, tuple) else None
    text = content if isinstance(content, str) else uamp.text_of(items or ())
    calls = tuple(
        uamp.ToolCallData(id=call.id, name=call.function.name, arguments=call.function.arguments)
        for call in message.tool_calls or ()
    )
    return uamp.Message(
        role=_ROLES[message.role],
        content=text,
        content_items=items,
        name=message.name,
        tool_calls=calls or None,
        tool_call_id=message.tool_call_id,
    )


def _item(part: InputContent) -> uamp.ContentItem:
    if part.type == "text":
        return uamp.TextContent(text=part.text)
    source = part.medium
    if source is None or source.type == "file":
        raise invalid(f"The source of a part of type {part.type} must be `data` or `url`.")
    is_reference = source.type == "url" and not is_data_url(source.value)
    medium = uamp.MediaUrl(url=source.value) if is_reference else source.value
    named = source.mime_type or media_type_of(source.value)
    media_type = named.partition(";")[0].strip().lower()
    kind, _, form = media_type.partition("/")
    match kind if part.type == "binary" else part.type:
        case "image":
            return uamp.ImageContent(image=medium, format=form or None)
        case "audio":
            return uamp.AudioContent(audio=medium, format=form or None)
        case "video":
            return uamp.VideoContent(video=medium, format=form or None)
        case _:
            return uamp.FileContent(
                file=medium,
                filename=part.filename or "document",
                mime_type=media_type or "application/octet-stream",
            )


def _last_text(messages: list[uamp.Message]) -> uamp.InputText:
    if not messages or messages[-1].role != "user" or messages[-1].content_items:
        raise invalid("A run in a chat must end with a text message from the user.")
    return uamp.InputText(text=messages[-1].content or "")


def invalid(message: str) -> RemoteProtocolError:
    """Return the refusal of an invalid input."""
    return RemoteProtocolError(ErrorCode.INVALID_EVENT, message)
