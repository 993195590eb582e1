"""Turns input events into one message, and a response's events into its output (UAMP §8.5.1).

Order is preserved and nothing is rendered; items pass through unchanged.
"""

from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence

import msgspec

from uamp.blank_text import is_blank
from uamp.errors import ErrorCode, RemoteProtocolError
from uamp.events import InputAudio, InputEvent, InputFile, InputImage, InputText, InputVideo
from uamp.output import OutputBuilder
from uamp.types.content import (
    AudioContent,
    ContentItem,
    FileContent,
    ImageContent,
    MediaUrl,
    Message,
    TextContent,
    VideoContent,
    with_content_id,
)
from uamp.types.inline_media import media_bytes


class Assembled(msgspec.Struct, frozen=True, kw_only=True):
    """A turn: the user's message, if any, and the messages before it."""

    message: Message | None
    context: list[Message]


def assemble(
    inputs: Sequence[InputEvent],
    *,
    new_id: Callable[[], str],
    messages: Sequence[Message] | None = None,
) -> Assembled:
    """Assemble ``inputs`` into a turn (UAMP §8.5.1).

    All user input becomes one message with its items in order; system and assistant text is
    context. A history comes first: ``messages`` of the response.create, else those of the last
    input.text that has them. If a history already ends with this turn, as §5.6 prints it, the turn
    is not repeated; without user input, the last user message of the history is the turn. Media get
    a ``content_id``. Raises RemoteProtocolError (invalid_media) if pieces of audio are not base64.
    """
    items: list[ContentItem] = []
    spoken: list[Message] = []
    history: Sequence[Message] = ()
    audio: list[InputAudio] = []
    for event in inputs:
        if isinstance(event, InputAudio):
            if audio and audio[0].format != event.format:
                items.append(_audio_item(audio))
                audio = []
            audio.append(event)
            if event.is_final:
                items.append(_audio_item(audio))
                audio = []
            continue
        if isinstance(event, InputText):
            history = event.messages or history
            if event.role != "user":
                spoken.append(Message(role=event.role, content=event.text))
                continue
        items.append(_item(event))
    if audio:
        items.append(_audio_item(audio))
    message, before = _turn(items, history if messages is None else messages)
    if message is not None:
        labelled = (with_content_id(item, new_id) for item in message.content_items or ())
        message = msgspec.structs.replace(message, content_items=tuple(labelled))
    return Assembled(message=message, context=[*before, *spoken])


def _item(event: InputText | InputImage | InputVideo | InputFile) -> ContentItem:
    match event:
        case InputText():
            return TextContent(text=event.text)
        case InputImage():
            return ImageContent(
                image=event.image,
                format=event.format,
                detail=event.detail,
                alt_text=event.alt_text,
                content_id=event.content_id,
            )
        case InputVideo():
            return VideoContent(video=event.video, format=event.format, content_id=event.content_id)
        case _:
            return FileContent(
                file=event.file,
                filename=event.filename,
                mime_type=event.mime_type,
                content_id=event.content_id,
            )


def _audio_item(pieces: Sequence[InputAudio]) -> AudioContent:
    """Combine the pieces of one stream into one item; a URL among them stands for the whole."""
    url = next((piece.audio for piece in pieces if isinstance(piece.audio, MediaUrl)), None)
    ids = (piece.content_id for piece in pieces if piece.content_id is not None)
    return AudioContent(
        audio=url or _join_audio(pieces), format=pieces[0].format, content_id=next(ids, None)
    )


def _join_audio(pieces: Sequence[InputAudio]) -> str:
    """Join pieces of base64, each encoded on its own, into the base64 of all their bytes."""
    texts = [piece.audio for piece in pieces if isinstance(piece.audio, str)]
    if len(texts) == 1:
        return texts[0]
    try:
        return b64encode(b"".join(map(media_bytes, texts))).decode()
    except ValueError:
        raise RemoteProtocolError(
            ErrorCode.INVALID_MEDIA,
            "the audio is not base64",
            event_id=pieces[-1].event_id,
            session_id=pieces[-1].session_id,
        ) from None


def says_something(message: Message) -> bool:
    """Return whether a message has non-blank text, a medium, a tool call or a tool result."""
    if not is_blank(message.content or "") or message.tool_calls or message.tool_call_id:
        return True
    items = message.content_items or ()
    return any(not isinstance(item, TextContent) or not is_blank(item.text) for item in items)


def text_of(items: Iterable[ContentItem]) -> str:
    """Join the text items of ``items`` with line breaks."""
    return "\n".join(item.text for item in items if isinstance(item, TextContent))


def _turn(
    items: Sequence[ContentItem], history: Sequence[Message]
) -> tuple[Message | None, Sequence[Message]]:
    """Split the input and history into the user's message and the history before it."""
    text = text_of(items)
    if history and history[-1].role == "user":
        message = _with_items(history[-1])
        # A history that ends with the turn may have it in full while the input has only its text.
        if not items or (
            message.content == text and all(isinstance(i, TextContent) for i in items)
        ):
            return message, history[:-1]
        if message.content == text:
            history = history[:-1]
    if not items:
        return None, history
    return Message(role="user", content=text, content_items=tuple(items)), history


def _with_items(message: Message) -> Message:
    """Return ``message`` with both its text and its items filled in."""
    items = message.content_items or (TextContent(text=message.content or ""),)
    content = text_of(items) if message.content is None else message.content
    return msgspec.structs.replace(message, content=content, content_items=items)


__all__ = ["Assembled", "OutputBuilder", "assemble", "says_something", "text_of"]
