"""Decodes and encodes frames (UAMP §4, §14.3).

A frame is parsed once; any fault in it becomes one RemoteProtocolError with the ids of the
offending event, if they are readable.
"""

import re
from typing import Any, Literal, TypeVar

import msgspec

from uamp.codec.dialects import DIALECTS, relax
from uamp.codec.strict_json import load, load_json
from uamp.errors import ErrorCode, LocalProtocolError, RemoteProtocolError
from uamp.events import (
    ANSWER_EVENTS,
    CLIENT_EVENTS,
    SERVER_EVENTS,
    InputText,
    ResponseCreate,
    SessionCreate,
    SessionUpdate,
    ToolResult,
)
from uamp.events.base import Event, UnknownEvent, type_of
from uamp.limits import DEFAULT_LIMITS, Limits
from uamp.types.generation import ModelOptions
from uamp.types.session import ToolDefinition

Sender = Literal["client", "server", "agent", "any"]

_TABLES: dict[Sender, dict[str, type[Event]]] = {
    "client": CLIENT_EVENTS,
    "server": SERVER_EVENTS,
    "agent": CLIENT_EVENTS | ANSWER_EVENTS,
    "any": CLIENT_EVENTS | SERVER_EVENTS,
}
_IDS = ("event_id", "session_id", "response_id")
_TYPE_NAME_CHARS = 128
_COUNTED = frozenset({SessionCreate, SessionUpdate, InputText, ResponseCreate})
# Only these may exceed the size of an event, by the media that they carry.
_MEDIA_EVENTS = frozenset(
    {
        "input.text",
        "input.audio",
        "input.image",
        "input.video",
        "input.file",
        "response.create",
        "tool.result",
        "response.delta",
        "response.done",
        "response.cancelled",
        "audio.delta",
        "message.created",
    }
)
_FRAME_HEAD = re.compile(
    r'\{"type":"[^"]*"(?:,"event_id":"(?:[^"\\]|\\.)*")?(?:,"timestamp":[^,}]*)?(,"session_id":)?'
)
# Vendors whose model options may be in a session's extensions, by name (UAMP §8.1).
_VENDORS = ("openai", "anthropic", "google")
_BOUNDED = frozenset(
    {"model", "temperature", "max_tokens", "max_completion_tokens", "max_output_tokens"}
)
_encoder = msgspec.json.Encoder()
_E = TypeVar("_E", bound=Event)


def decode(
    raw: str | bytes, *, limits: Limits = DEFAULT_LIMITS, sender: Sender = "client"
) -> Event:
    """Decode a frame sent by ``sender`` ("agent": a connected agent, UAMP §10.2).

    A type that this sender may not send becomes an UnknownEvent, and unknown fields are dropped
    (UAMP §14.3). Raises RemoteProtocolError with the ids of the frame, if they are readable.
    """
    loaded = load(raw, limits)
    frame = loaded.value
    if not isinstance(frame, dict):
        raise RemoteProtocolError(ErrorCode.INVALID_EVENT, "an event must be a JSON object")
    type_name = frame.get("type")
    if not isinstance(type_name, str) or not type_name:
        raise _refusal(frame, ErrorCode.INVALID_EVENT, "an event must have a type that is a string")
    _check_ids(frame, limits)
    cls = _TABLES[sender].get(type_name)
    event = _unknown(frame, type_name) if cls is None else _convert(frame, type_name, cls)
    if type(event) in _COUNTED:
        _check_counts(event, frame, limits)
        _check_options(event, frame)
    size = loaded.plain_size if type_name in _MEDIA_EVENTS else loaded.size
    if size > limits.event_bytes:
        _check_size(event, frame, size, limits)
    return event


def _refusal(frame: dict[str, Any], code: ErrorCode, message: str) -> RemoteProtocolError:
    """Return the error for ``frame`` with those of its ids that are strings."""
    event_id, session_id, response_id = (
        value if isinstance(value := frame.get(name), str) else None for name in _IDS
    )
    error = RemoteProtocolError(
        code, message, event_id=event_id, session_id=session_id, response_id=response_id
    )
    error.event_type = type_name if isinstance(type_name := frame.get("type"), str) else None
    return error


def _check_ids(frame: dict[str, Any], limits: Limits) -> None:
    """Check the length of ids before an answer repeats them."""
    for name in _IDS:
        value = frame.get(name)
        if isinstance(value, str) and not 0 < len(value) <= limits.event_id_chars:
            del frame[name]
            raise _refusal(
                frame,
                ErrorCode.INVALID_EVENT,
                f"{name} must have 1 to {limits.event_id_chars} characters",
            )


def _unknown(frame: dict[str, Any], type_name: str) -> UnknownEvent:
    event_id, session_id = frame.get("event_id"), frame.get("session_id")
    return UnknownEvent(
        type_name=type_name[:_TYPE_NAME_CHARS],
        event_id=event_id if isinstance(event_id, str) else None,
        session_id=session_id if isinstance(session_id, str) else None,
    )


def _convert(frame: dict[str, Any], type_name: str, cls: type[_E]) -> _E:
    dialect = DIALECTS.get(type_name)
    if dialect is not None:
        dialect(frame)
    try:
        return msgspec.convert(frame, cls)
    except msgspec.ValidationError:
        relax(frame)
    try:
        return msgspec.convert(frame, cls)
    except msgspec.ValidationError as error:
        raise _refusal(frame, ErrorCode.INVALID_EVENT, f"{type_name}: {error}") from None


def _check_counts(event: Event, frame: dict[str, Any], limits: Limits) -> None:
    if len(_messages_of(event)) > limits.messages:
        raise _refusal(
            frame,
            ErrorCode.TOO_MANY_ITEMS,
            f"a history may have at most {limits.messages} messages",
        )
    tools = _tools_of(event)
    if len(tools) > limits.tools:
        raise _refusal(frame, ErrorCode.TOO_MANY_ITEMS, f"at most {limits.tools} tools")
    for function in (tool.function for tool in tools if tool.function):
        if len(function.name) > limits.tool_name_chars:
            raise _refusal(
                frame,
                ErrorCode.INVALID_EVENT,
                f"a tool's name may have at most {limits.tool_name_chars} characters",
            )
        parameters = function.parameters
        if parameters and len(_encoder.encode(parameters)) > limits.tool_schema_bytes:
            raise _refusal(
                frame,
                ErrorCode.EVENT_TOO_LARGE,
                f"a tool's schema may have at most {limits.tool_schema_bytes} bytes",
            )


def _check_options(event: Event, frame: dict[str, Any]) -> None:
    """Check the model options in a session's extensions, which have no type of their own."""
    match event:
        case SessionCreate(session=session):
            extensions = session.extensions
        case SessionUpdate(session=patch) if patch is not None:
            extensions = patch.extensions or {}
        case _:
            return
    of_vendors = (_bounded(extensions.get(name)) for name in _VENDORS)
    for options in (extensions, *of_vendors):
        try:
            msgspec.convert(options or {}, ModelOptions)
        except msgspec.ValidationError as error:
            raise _refusal(frame, ErrorCode.INVALID_EVENT, f"session.extensions: {error}") from None


def _bounded(options: object) -> object:
    """Return the vendor options that are checked here; the rest are up to the vendor."""
    if not isinstance(options, dict):
        return options
    return {name: value for name, value in options.items() if name in _BOUNDED}


def _messages_of(event: Event) -> tuple[object, ...]:
    match event:
        case InputText():
            return event.messages or ()
        case ResponseCreate(response=response) if response is not None:
            return response.messages or ()
    return ()


def _tools_of(event: Event) -> tuple[ToolDefinition, ...]:
    match event:
        case SessionCreate():
            return event.session.tools
        case SessionUpdate(session=patch) if patch is not None:
            return patch.tools or ()
        case ResponseCreate(response=response) if response is not None:
            return response.tools or ()
    return ()


def _check_size(event: Event, frame: dict[str, Any], size: int, limits: Limits) -> None:
    allowed = limits.messages_bytes if _messages_of(event) else limits.event_bytes
    if isinstance(event, ToolResult):
        allowed += limits.tool_result_bytes
    if size > allowed:
        raise _refusal(
            frame, ErrorCode.EVENT_TOO_LARGE, f"this event may have at most {allowed} bytes"
        )


def encode(
    event: Event,
    *,
    event_id: str | None = None,
    timestamp: float | None = None,
    session_id: str | None = None,
    seq: int | None = None,
) -> str:
    """Encode ``event`` as one frame; the given values fill in only missing fields.

    Raises LocalProtocolError for an event without a wire type or with a value that JSON cannot
    hold.
    """
    supplied = {
        "event_id": event_id if event.event_id is None else None,
        "timestamp": timestamp if event.timestamp is None else None,
        "session_id": session_id if event.session_id is None else None,
        "seq": seq if event.seq is None else None,
    }
    lacking = {name: value for name, value in supplied.items() if value is not None}
    if isinstance(event, UnknownEvent):
        raise LocalProtocolError("an unknown event is not sent")
    if lacking:
        event = msgspec.structs.replace(event, **lacking)
    try:
        return _encoder.encode(event).decode()
    except (TypeError, ValueError, OverflowError) as error:
        raise LocalProtocolError(f"{type_of(event)} is not JSON: {error}") from error


def to_dict(event: Event) -> dict[str, Any]:
    """Return ``event`` as plain values, in the shape of its frame."""
    plain: dict[str, Any] = msgspec.json.decode(_encoder.encode(event))
    return plain


def session_stamp(session_id: str) -> str:
    """Return the text that ``stamp_session`` inserts into frames of a session."""
    return f',"session_id":{_encoder.encode(session_id).decode()}'


def stamp_session(frame: str, stamp: str) -> str:
    """Insert a stamp of ``session_stamp`` into an encoded frame.

    Used for an event that is encoded once and sent to many sessions. Raises LocalProtocolError for
    a frame that ``encode`` did not write or that already names a session.
    """
    head = _FRAME_HEAD.match(frame)
    if head is None or head[1]:
        raise LocalProtocolError("only a frame of encode() without a session is stamped")
    at = head.end()
    return f"{frame[:at]}{stamp}{frame[at:]}"


__all__ = [
    "Sender",
    "decode",
    "encode",
    "load_json",
    "session_stamp",
    "stamp_session",
    "to_dict",
]
