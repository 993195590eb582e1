"""Request parts that OpenAI's dialects share: names, files and the input of a chat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec

import uamp
from gateway_app.openai.errors import refused, unsupported
from gateway_app.types import media

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from uamp.events import InputEvent

    Refused: TypeAlias = Mapping[str, tuple[tuple[Any, ...], str]]
    """For each parameter, the values accepted besides null, and what to do instead."""

ModelName: TypeAlias = Annotated[str, msgspec.Meta(max_length=256)]

CallId: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]
"""The id of a call, chosen by the client or its model."""

TokenLimit: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
"""The maximum tokens of an answer; clients send a very large number for no limit."""


class ConversationReference(msgspec.Struct, frozen=True):
    """A chat of this server, named by its id."""

    id: str


Conversation: TypeAlias = str | ConversationReference


def chat_of(conversation: Conversation | None) -> str | None:
    """Return the id of the chat that a request names."""
    return conversation.id if isinstance(conversation, ConversationReference) else conversation


def check_refused(body: msgspec.Struct, parameters: Refused) -> None:
    """Raise RemoteProtocolError unsupported_parameter for parameters that agents do not support."""
    for name, (accepted_values, message) in parameters.items():
        value = getattr(body, name)
        if value is not None and value not in accepted_values:
            raise unsupported(name, message)


def token_limit(requested: int | None) -> int | None:
    """Return the token limit of an answer; None, the agent's default, if `requested` sets no limit.

    Numbers above `uamp.MAX_TOKENS`, the highest limit a response may have, set none.
    """
    return None if requested is None or requested > uamp.MAX_TOKENS else requested


def document_of(
    place: str, *, file_id: str | None, file_data: str | None, filename: str | None
) -> uamp.FileContent:
    """Return a document from base64, a URL or the id of a stored content.

    Raises RemoteProtocolError that names the place of a mistake.
    """
    if file_id is not None:
        return media.file_item(content_of(f"{place}.file_id", file_id), filename)
    if file_data is None:
        raise refused(f"{place}.file_data", "A file needs file_data or a file_id.")
    return media.file_item(file_data, filename)


def content_of(place: str, file_id: str) -> str:
    """Return the URL of the content that a file id names, or raise RemoteProtocolError."""
    url = media.content_of(file_id)
    if url is None:
        raise refused(place, "file_id must be the id of a file stored on this server.")
    return url


def chat_inputs(place: str, messages: Sequence[uamp.Message]) -> tuple[InputEvent, ...]:
    """Convert the last user message to inputs of a chat (UAMP §5.6 to §5.10).

    Raises RemoteProtocolError if there is no user message.
    """
    last = next((message for message in reversed(messages) if message.role == "user"), None)
    if last is None:
        raise refused(place, "There is no user message to send to the chat.")
    return inputs_of(last)


def inputs_of(message: uamp.Message) -> tuple[InputEvent, ...]:
    """Convert a message of the user to inputs."""
    if message.content_items is None:
        return (uamp.InputText(text=message.content or ""),)
    return tuple(_input_of(item) for item in message.content_items)


def _input_of(item: uamp.ContentItem) -> InputEvent:
    match item:
        case uamp.ImageContent():
            return uamp.InputImage(image=item.image, detail=item.detail)
        case uamp.AudioContent():
            return uamp.InputAudio(audio=item.audio, format=item.format or "", is_final=True)
        case uamp.FileContent():
            return uamp.InputFile(file=item.file, filename=item.filename, mime_type=item.mime_type)
        case _:
            return uamp.InputText(text=uamp.text_of((item,)))
