"""From input events to one message, and from a response's events to its output (UAMP §8.5.1).

Law of this file: order is kept and nothing is rendered; items go through as they came.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from uamp.content import (
    AudioContent,
    ContentItem,
    FileContent,
    ImageContent,
    MediaUrl,
    Message,
    TextContent,
    VideoContent,
    join_base64,
    with_content_id,
)
from uamp.errors import ErrorCode, RemoteProtocolError
from uamp.events import InputAudio, InputEvent, InputFile, InputImage, InputText, InputVideo
from uamp.output import OutputBuilder


class Assembled(msgspec.Struct, frozen=True, kw_only=True):
    """A turn: the user's one message, if any, and the messages that come before it."""

    message: Message | None
    context: list[Message]


def assemble(inputs: Sequence[InputEvent], *, new_id: Callable[[], str]) -> Assembled:
    """Return the turn that ``inputs`` make up (UAMP §8.5.1).

    All user input is one message with its items in order; system and assistant text is context.
    The ``messages`` of the last input.text that has them come first; where they end with this
    very turn, as §5.6 prints it, the turn is not said twice. Media get a ``content_id``. Raises
    RemoteProtocolError (invalid_media) where pieces of audio are not base64.
    """
    items: list[ContentItem] = []
    spoken: list[Message] = []
    history: list[Message] = []
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
            history = list(event.messages) if event.messages is not None else history
            if event.role != "user":
                spoken.append(Message(role=event.role, content=event.text))
                continue
        items.append(_item(event))
    if audio:
        items.append(_audio_item(audio))
    items, history = _without_repeated_turn(items, history)
    message = _user_message([with_content_id(item, new_id) for item in items])
    return Assembled(message=message, context=[*history, *spoken])


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
        case InputFile():
            return FileContent(
                file=event.file,
                filename=event.filename,
                mime_type=event.mime_type,
                content_id=event.content_id,
            )


def _audio_item(pieces: Sequence[InputAudio]) -> AudioContent:
    if len(pieces) == 1 or any(isinstance(piece.audio, MediaUrl) for piece in pieces):
        audio = pieces[-1].audio
    else:
        try:
            audio = join_base64(str(piece.audio) for piece in pieces)
        except ValueError:
            raise RemoteProtocolError(
                ErrorCode.INVALID_MEDIA,
                "the audio is not base64",
                event_id=pieces[-1].event_id,
                session_id=pieces[-1].session_id,
            ) from None
    ids = (piece.content_id for piece in pieces if piece.content_id is not None)
    return AudioContent(audio=audio, format=pieces[0].format, content_id=next(ids, None))


def text_of(items: Iterable[ContentItem]) -> str:
    """Return the text items of ``items``, joined by line breaks."""
    return "\n".join(item.text for item in items if isinstance(item, TextContent))


def _without_repeated_turn(
    items: list[ContentItem], history: list[Message]
) -> tuple[list[ContentItem], list[Message]]:
    """Drop the last message of the history where it is the turn itself."""
    if not items or not history or history[-1].role != "user":
        return items, history
    last = history[-1]
    said = last.content if last.content is not None else text_of(last.content_items or ())
    if said != text_of(items):
        return items, history
    only_text = all(isinstance(item, TextContent) for item in items)
    if only_text and last.content_items:
        items = list(last.content_items)
    return items, history[:-1]


def _user_message(items: list[ContentItem]) -> Message | None:
    if not items:
        return None
    return Message(role="user", content=text_of(items), content_items=tuple(items))


__all__ = ["Assembled", "OutputBuilder", "assemble", "text_of"]
