"""`GET /api/v1/messages/{id}/frames`: a chat message as frames of each protocol.

The writers of the dialects build the frames of an answer from its stored events. The frames of a
question are those that a client sends to ask it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.http import HttpRequest, HttpResponse, HttpResponseBase

import uamp
from gateway_app.backend.agents.agent_directory import problem_for
from gateway_app.backend.message_reader import message_for
from gateway_app.http import dialect_view
from gateway_app.protocols.table import PROTOCOLS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway_app.types.protocol_presentation import (
        ExampleQuestion,
        PresentedMessage,
        ProtocolPresentation,
    )

FRAMES_BYTES: Final = 64 * 1024
"""The limit on the frames shown per protocol: whole frames, in order."""
STRING_CHARS: Final = 4_000
"""The limit on each string in a frame, since an end frame repeats the whole answer."""

_encoder: Final = msgspec.json.Encoder()


@dialect_view(problem_for, "GET", "HEAD")
async def frames(request: HttpRequest, message_id: str) -> HttpResponseBase:
    """Return the frames of a message to a member of its chat."""
    message = await message_for(request, message_id)
    response = HttpResponse(_body(message), content_type="application/json")
    response["Cache-Control"] = "private, no-store"
    response["Vary"] = "Authorization, X-API-Key, Cookie, Origin"
    return response


def _body(message: PresentedMessage) -> bytes:
    return _encoder.encode(
        {
            "object": "message_frames",
            "message_id": message.event.message.id,
            "response_id": message.event.message.response_id,
            "protocols": [_protocol_view(protocol, message) for protocol in PROTOCOLS],
        }
    )


def _protocol_view(protocol: ProtocolPresentation, message: PresentedMessage) -> dict[str, Any]:
    """Return a message in one protocol; `call` asks it again, or is null without a question."""
    frames, is_cut = _bounded(_frames(protocol, message))
    return {
        "key": protocol.key,
        "label": protocol.label,
        "title": protocol.title,
        "frames": frames,
        "is_cut": is_cut,
        "call": None if message.question is None else _call(protocol, message.question),
    }


def _frames(protocol: ProtocolPresentation, message: PresentedMessage) -> Iterable[Any]:
    if message.answer is not None:
        yield from protocol.response_frames(message.answer)
    elif message.question is not None and message.event.message.role == "user":
        yield from protocol.request_frames(message.question)
    if protocol.key == "uamp":
        # The chat log is part of UAMP alone, and announces every message.
        yield uamp.to_dict(message.event)


def _call(protocol: ProtocolPresentation, question: ExampleQuestion) -> dict[str, Any]:
    """Return the call for curl.

    `in_chat` is true if the call asks in the message's chat; not every protocol can name one.
    """
    code = protocol.examples(question)["curl"]
    in_chat = bool(question.chat_id) and question.chat_id in code
    return {"curl": code, "in_chat": in_chat}


def _bounded(frames: Iterable[Any]) -> tuple[list[msgspec.Raw], bool]:
    """Return the first frames with long strings cut, and whether anything was left out."""
    encoded_frames: list[msgspec.Raw] = []
    size, is_cut = 0, False
    for frame in frames:
        short_frame, was_cut = _shortened(frame)
        is_cut = is_cut or was_cut
        encoded = _encoder.encode(short_frame)
        size += len(encoded)
        if size > FRAMES_BYTES:
            return encoded_frames, True
        encoded_frames.append(msgspec.Raw(encoded))
    return encoded_frames, is_cut


def _shortened(value: Any) -> tuple[Any, bool]:
    """Truncate the strings of a JSON value, and return whether any was cut."""
    if isinstance(value, str):
        is_long = len(value) > STRING_CHARS
        return (f"{value[:STRING_CHARS]}…" if is_long else value), is_long
    if isinstance(value, dict):
        items = {name: _shortened(member) for name, member in value.items()}
        short_members = {name: member for name, (member, _) in items.items()}
        return short_members, any(was_cut for _, was_cut in items.values())
    if isinstance(value, list | tuple):
        members = [_shortened(member) for member in value]
        return [member for member, _ in members], any(was_cut for _, was_cut in members)
    return value, False
