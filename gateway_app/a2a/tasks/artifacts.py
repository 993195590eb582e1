"""The artifacts of a task: the texts of the answer, or the values in them, and its media."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import uamp
from gateway_app.a2a.tasks.task import TaskArtifact, TaskPart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gateway_app.types.stored_response import StoredResponse
    from uamp.events import Delta

    Link: TypeAlias = Callable[[str], str]
    Piece: TypeAlias = str | uamp.MediaContent
    JsonValue: TypeAlias = dict[str, Any] | list[Any]


def artifacts_of(
    stored: StoredResponse, link: Link, *, accepts_data: bool = True
) -> Iterator[TaskArtifact]:
    """Yield the artifacts of a response, in the order of its output.

    `link` returns the absolute address of a medium. For a client that `accepts_data`, a completed
    text that consists of one JSON object or array becomes a value.
    """
    has_values = accepts_data and stored.status == "completed"
    for number, piece in enumerate(pieces_of(stored.output)):
        value = value_of(piece) if has_values else None
        if value is None:
            yield artifact_of(stored.id, number, piece, link)
        else:
            yield value_artifact(stored.id, number, value)


def pieces_of(items: Iterable[uamp.ContentItem]) -> Iterator[Piece]:
    """Yield the media of an output, and the joined text before, between and after them."""
    texts: list[str] = []
    for item in items:
        if isinstance(item, uamp.TextContent):
            texts.append(item.text)
        elif isinstance(item, uamp.MediaContent):
            if text := "".join(texts):
                yield text
            texts = []
            yield item
    if text := "".join(texts):
        yield text


def artifact_of(task_id: str, number: int, piece: Piece, link: Link) -> TaskArtifact:
    """Return the artifact of a piece, or of a part of a text.

    A text is called `answer`; a medium has the name of its file or its type.
    """
    if isinstance(piece, str):
        part = TaskPart(text=piece, media_type="text/plain")
        return TaskArtifact(artifact_id=f"{task_id}-{number}", name="answer", parts=(part,))
    part = medium_part(piece, link)
    name = part.filename or (part.media_type or "medium").partition("/")[0]
    return TaskArtifact(artifact_id=f"{task_id}-{number}", name=name, parts=(part,))


def value_artifact(task_id: str, number: int, value: JsonValue) -> TaskArtifact:
    """Return the artifact of a text that is a value."""
    part = TaskPart(data=value, media_type="application/json")
    return TaskArtifact(artifact_id=f"{task_id}-{number}", name="answer", parts=(part,))


def value_of(piece: Piece) -> JsonValue | None:
    """Return the JSON object or array that a text consists of; None for anything else."""
    if not isinstance(piece, str) or not piece.lstrip().startswith(("{", "[")):
        return None
    try:
        value = uamp.load_json(piece.encode(), uamp.DEFAULT_LIMITS)
    except uamp.RemoteProtocolError:
        return None
    return value if isinstance(value, dict | list) else None


def parts_of(items: Iterable[uamp.ContentItem], link: Link) -> Iterator[TaskPart]:
    """Yield the text and the media of content items as parts."""
    for item in items:
        if isinstance(item, uamp.TextContent):
            yield TaskPart(text=item.text)
        elif isinstance(item, uamp.MediaContent):
            yield medium_part(item, link)


def medium_part(item: uamp.MediaContent, link: Link) -> TaskPart:
    """Convert a medium to a part with a URL, or with its bytes in base64."""
    medium = uamp.media_of(item)
    filename, media_type = None, None
    match item:
        case uamp.FileContent():
            filename, media_type = item.filename, item.mime_type
        case uamp.ImageContent():
            media_type = f"image/{item.format or 'png'}"
        case uamp.AudioContent():
            media_type = f"audio/{item.format or 'wav'}"
        case uamp.VideoContent():
            media_type = f"video/{item.format or 'mp4'}"
    if isinstance(medium, uamp.MediaUrl):
        return TaskPart(url=link(medium.url), filename=filename, media_type=media_type)
    return TaskPart(raw=medium, filename=filename, media_type=media_type)


def item_of(delta: Delta) -> uamp.MediaContent | None:
    """Return the medium that a delta carries as a whole; None for other deltas."""
    match delta.type:
        case "image" if delta.image is not None:
            return uamp.ImageContent(image=delta.image, format=delta.format)
        case "video" if delta.video is not None:
            return uamp.VideoContent(video=delta.video, format=delta.format)
        case "file" if delta.file is not None:
            return uamp.FileContent(
                file=delta.file,
                filename=delta.filename or "file",
                mime_type=delta.mime_type or "application/octet-stream",
            )
        case _:
            return None
