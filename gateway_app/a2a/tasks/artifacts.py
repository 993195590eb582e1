"""The artifacts of a task: the text of the answer, the value that it is, and its media."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import uamp
from gateway_app.a2a.tasks.task import TaskArtifact, TaskPart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gateway_app.shapes.stored_response import StoredResponse
    from uamp.events import Delta

    Link: TypeAlias = Callable[[str], str]


def artifacts_of(stored: StoredResponse, link: Link) -> Iterator[TaskArtifact]:
    """Yield the artifacts of a response; `link` makes absolute addresses of media."""
    text = text_of(stored.output)
    if text:
        yield text_artifact(stored.id, text)
        if stored.status == "completed":
            yield from data_artifact(stored.id, text)
    media = [item for item in stored.output if uamp.media_of(item) is not None]
    for number, item in enumerate(media):
        yield medium_artifact(stored.id, number, medium_part(item, link))


def text_of(items: Iterable[uamp.ContentItem]) -> str:
    """Return all text of an output, as the offsets of its deltas count it."""
    return "".join(item.text for item in items if isinstance(item, uamp.TextContent))


def text_artifact(task_id: str, text: str) -> TaskArtifact:
    """Return the artifact `answer`, or a piece of it."""
    part = TaskPart(text=text, media_type="text/plain")
    return TaskArtifact(artifact_id=f"{task_id}-text", name="answer", parts=(part,))


def data_artifact(task_id: str, text: str) -> Iterator[TaskArtifact]:
    """Yield the value that a text is, where it is a JSON object or array and nothing else."""
    if not text.lstrip().startswith(("{", "[")):
        return
    try:
        data = uamp.load_json(text.encode(), uamp.DEFAULT_LIMITS)
    except uamp.RemoteProtocolError:
        return
    part = TaskPart(data=data, media_type="application/json")
    yield TaskArtifact(artifact_id=f"{task_id}-data", name="data", parts=(part,))


def medium_artifact(task_id: str, number: int, part: TaskPart) -> TaskArtifact:
    """Return the artifact of a medium, which is named for its file or its type."""
    name = part.filename or (part.media_type or "medium").partition("/")[0]
    return TaskArtifact(artifact_id=f"{task_id}-medium-{number}", name=name, parts=(part,))


def parts_of(items: Iterable[uamp.ContentItem], link: Link) -> Iterator[TaskPart]:
    """Yield the text and the media of content items as parts."""
    for item in items:
        if isinstance(item, uamp.TextContent):
            yield TaskPart(text=item.text)
        elif uamp.media_of(item) is not None:
            yield medium_part(item, link)


def medium_part(item: uamp.ContentItem, link: Link) -> TaskPart:
    """Return a medium as a part with a URL, or with its bytes in base64."""
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


def item_of(delta: Delta) -> uamp.ContentItem | None:
    """Return the medium that a delta carries whole; None for others."""
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
