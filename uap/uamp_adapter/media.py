"""The media of one request to a model: loaded, limited and converted to blocks."""

import asyncio
import base64
import codecs
from collections.abc import Sequence
from typing import Any, Protocol

from uamp.types.content import (
    AudioContent,
    FileContent,
    ImageContent,
    MediaContent,
    MediaUrl,
    Message,
    content_id_of,
    media_of,
)
from uamp.types.inline_media import media_bytes
from upp import (
    AudioBlock,
    Base64Source,
    DocumentBlock,
    ImageBlock,
    TextBlock,
    TextSource,
)
from upp.conversation.messages import UserContent

MEDIA_BYTES = 20 * 1024 * 1024
"""The most bytes of media in one request; the newest media take precedence."""
DOCUMENT_CHARS = 200_000
"""The most characters of a text document in a request; the rest is cut off, with a note."""


class MediaLoader(Protocol):
    """Loads stored content for a request to a provider."""

    async def load(self, content_id: str) -> tuple[bytes, str]:
        """Return the bytes and the MIME type; raises LookupError if it may not be read."""


def description_of(item: MediaContent) -> dict[str, Any]:
    """Describe a media item as {content_id, kind, filename, mime_type}."""
    match item:
        case FileContent():
            kind, filename, mime_type = "file", item.filename, item.mime_type
        case ImageContent():
            kind, filename, mime_type = "image", "", f"image/{item.format}" if item.format else ""
        case AudioContent():
            kind, filename, mime_type = "audio", "", f"audio/{item.format}" if item.format else ""
        case _:
            kind, filename, mime_type = "video", "", f"video/{item.format}" if item.format else ""
    return {
        "content_id": content_id_of_item(item),
        "kind": kind,
        "filename": filename,
        "mime_type": mime_type,
    }


def content_id_of_item(item: MediaContent) -> str | None:
    """Return the id of the stored content that an item refers to, if any."""
    medium = media_of(item)
    return item.content_id or (content_id_of(medium.url) if isinstance(medium, MediaUrl) else None)


class RequestMedia:
    """The media of one request, limited to MEDIA_BYTES.

    Without `names_audio`, audio that the model accepts has no label: it is the message itself.

    Only the run's task uses it; threads decode and encode the data.
    """

    def __init__(
        self, loader: MediaLoader | None, *, accepts_audio: bool, names_audio: bool = True
    ) -> None:
        self._names_audio = names_audio
        self._loader = loader
        self._kinds: tuple[type[MediaContent], ...] = (ImageContent, FileContent)
        if accepts_audio:
            self._kinds = (*self._kinds, AudioContent)
        self._blocks: dict[int, UserContent | None] = {}

    @property
    def active(self) -> bool:
        """Whether media are read at all."""
        return self._loader is not None

    async def read(self, history: Sequence[Message]) -> None:
        """Load the media that fit, newest first."""
        if self._loader is None:
            return
        remaining = MEDIA_BYTES
        for message in reversed(history):
            for item in reversed(message.content_items or ()):
                if message.role == "user" and isinstance(item, self._kinds):
                    data, mime_type = await self._load(self._loader, item)
                    if 0 < len(data) <= remaining:
                        remaining -= len(data)
                        # Encoding megabytes as base64 would block everything else in this process.
                        self._blocks[id(item)] = await asyncio.to_thread(
                            _sound if isinstance(item, AudioContent) else _block,
                            data,
                            mime_type,
                            description_of(item)["filename"],
                        )

    async def _load(self, loader: MediaLoader, item: MediaContent) -> tuple[bytes, str]:
        """Return an item's data, or no data if it cannot be read."""
        medium = media_of(item)
        if isinstance(medium, str):
            try:
                data = await asyncio.to_thread(media_bytes, medium)
            except ValueError:
                return b"", ""
            return data, description_of(item)["mime_type"]
        content_id = content_id_of_item(item)
        if content_id is None:
            return b"", ""
        try:
            return await loader.load(content_id)
        except LookupError:
            return b"", ""

    def blocks(self, item: MediaContent) -> list[UserContent]:
        """Return a label for an item and, if it was accepted, its data."""
        if not self.active:
            return []
        fields = ", ".join(f"{key}={value}" for key, value in description_of(item).items() if value)
        name = TextBlock(text=f"[attachment: {fields}]")
        block = self._blocks.get(id(item))
        if isinstance(block, AudioBlock) and not self._names_audio:
            return [block]
        return [name, block] if block is not None else [name]


def _sound(data: bytes, mime_type: str, _filename: str) -> UserContent | None:
    return AudioBlock(data=data, mime_type=mime_type) if mime_type.startswith("audio/") else None


def _block(data: bytes, mime_type: str, filename: str) -> UserContent | None:
    kind = _picture_type(data)
    if kind is not None or mime_type == "application/pdf":
        encoded = Base64Source(data=base64.b64encode(data).decode())
        if kind is not None:
            return ImageBlock(source=encoded, mime_type=kind)
        return DocumentBlock(source=encoded, mime_type=mime_type, title=filename or None)
    if mime_type.startswith("text/") or mime_type == "application/json":
        text = document_text(data)
        if len(text) > DOCUMENT_CHARS:
            text = f"{text[:DOCUMENT_CHARS]}\n[cut off after {DOCUMENT_CHARS} characters]"
        return DocumentBlock(
            source=TextSource(data=text), mime_type=mime_type, title=filename or None
        )
    return None


def document_text(data: bytes) -> str:
    """Decode a text file as UTF-8, or as UTF-16 with a byte order mark; mark failures."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors="replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode(errors="replace")
        return f"[not UTF-8: \N{REPLACEMENT CHARACTER} stands for what could not be read]\n{text}"


def _picture_type(data: bytes) -> str | None:
    """Return an image's type, if models support it, from its first bytes."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return None
