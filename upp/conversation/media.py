"""Shortcuts for creating media blocks (UPP-1.3 §6.6).

A file's type is inferred from its name unless given; an unknown type is an error, never a guess.
"""

import mimetypes
from base64 import b64decode, b64encode
from pathlib import Path

from upp.conversation.messages import (
    AudioBlock,
    Base64Source,
    BytesSource,
    DocumentBlock,
    ImageBlock,
    TextSource,
    UrlSource,
    VideoBlock,
)


def mime_type_of(name: str | Path) -> str:
    """Return the MIME type for a file name or URL; raises ValueError if unknown."""
    mime_type, packed = mimetypes.guess_type(str(name).split("?", maxsplit=1)[0])
    if mime_type is None or packed is not None:
        raise ValueError(f"The type of {name} cannot be inferred from its name.")
    return mime_type


class Image:
    """Creates image blocks."""

    @staticmethod
    def from_path(path: str | Path, mime_type: str | None = None) -> ImageBlock:
        """Create an image from a file; raises OSError, ValueError."""
        kind = mime_type or mime_type_of(path)
        return Image.from_bytes(Path(path).read_bytes(), kind)

    @staticmethod
    def from_url(url: str, mime_type: str | None = None) -> ImageBlock:
        """Create an image from a URL, which the provider fetches; raises ValueError."""
        return ImageBlock(source=UrlSource(url=url), mime_type=mime_type or mime_type_of(url))

    @staticmethod
    def from_bytes(data: bytes, mime_type: str) -> ImageBlock:
        """Create an image from bytes."""
        return ImageBlock(source=BytesSource(data=data), mime_type=mime_type)

    @staticmethod
    def from_base64(data: str, mime_type: str) -> ImageBlock:
        """Create an image from base64 text."""
        return ImageBlock(source=Base64Source(data=data), mime_type=mime_type)


class Document:
    """Creates document blocks."""

    @staticmethod
    def from_path(path: str | Path, mime_type: str | None = None) -> DocumentBlock:
        """Create a document from a file, with its name as the title; raises OSError, ValueError."""
        kind = mime_type or mime_type_of(path)
        data = Path(path).read_bytes()
        if kind.startswith("text/"):
            return Document.from_text(data.decode(), kind, title=Path(path).name)
        return Document.from_bytes(data, kind, title=Path(path).name)

    @staticmethod
    def from_url(
        url: str, mime_type: str | None = None, *, title: str | None = None
    ) -> DocumentBlock:
        """Create a document from a URL, which the provider fetches; raises ValueError."""
        kind = mime_type or mime_type_of(url)
        return DocumentBlock(source=UrlSource(url=url), mime_type=kind, title=title)

    @staticmethod
    def from_bytes(data: bytes, mime_type: str, *, title: str | None = None) -> DocumentBlock:
        """Create a document from bytes."""
        encoded = b64encode(data).decode()
        return Document.from_base64(encoded, mime_type, title=title)

    @staticmethod
    def from_base64(data: str, mime_type: str, *, title: str | None = None) -> DocumentBlock:
        """Create a document from base64 text."""
        return DocumentBlock(source=Base64Source(data=data), mime_type=mime_type, title=title)

    @staticmethod
    def from_text(
        text: str, mime_type: str = "text/plain", *, title: str | None = None
    ) -> DocumentBlock:
        """Create a document from plain text."""
        return DocumentBlock(source=TextSource(data=text), mime_type=mime_type, title=title)


class Audio:
    """Creates audio blocks."""

    @staticmethod
    def from_path(path: str | Path, mime_type: str | None = None) -> AudioBlock:
        """Create audio from a file; raises OSError, ValueError."""
        kind = mime_type or mime_type_of(path)
        return Audio.from_bytes(Path(path).read_bytes(), kind)

    @staticmethod
    def from_bytes(data: bytes, mime_type: str, *, duration: float | None = None) -> AudioBlock:
        """Create audio from bytes; `duration` is in seconds."""
        return AudioBlock(data=data, mime_type=mime_type, duration=duration)

    @staticmethod
    def from_base64(data: str, mime_type: str, *, duration: float | None = None) -> AudioBlock:
        """Create audio from base64 text; raises ValueError."""
        return Audio.from_bytes(b64decode(data, validate=True), mime_type, duration=duration)


class Video:
    """Creates video blocks."""

    @staticmethod
    def from_path(path: str | Path, mime_type: str | None = None) -> VideoBlock:
        """Create a video from a file; raises OSError, ValueError."""
        kind = mime_type or mime_type_of(path)
        return Video.from_bytes(Path(path).read_bytes(), kind)

    @staticmethod
    def from_bytes(data: bytes, mime_type: str, *, duration: float | None = None) -> VideoBlock:
        """Create a video from bytes; `duration` is in seconds."""
        return VideoBlock(data=data, mime_type=mime_type, duration=duration)

    @staticmethod
    def from_base64(data: str, mime_type: str, *, duration: float | None = None) -> VideoBlock:
        """Create a video from base64 text; raises ValueError."""
        return Video.from_bytes(b64decode(data, validate=True), mime_type, duration=duration)
