"""Short ways to blocks of media (UPP-1.3 §6.6).

The type of a file follows from its name unless it is given; a type that stays unknown is
an error, never a guess.
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
    """Return the MIME type of a file's name or address; raises ValueError if unknown."""
    found, packed = mimetypes.guess_type(str(name).split("?", maxsplit=1)[0])
    if found is None or packed is not None:
        raise ValueError(f"The type of {name} cannot be inferred from its name.")
    return found


class Image:
    """Makes pictures."""

    @staticmethod
    def from_path(path: str | Path, mime_type: str | None = None) -> ImageBlock:
        """Return the picture in a file; raises OSError, ValueError."""
        kind = mime_type or mime_type_of(path)
        return Image.from_bytes(Path(path).read_bytes(), kind)

    @staticmethod
    def from_url(url: str, mime_type: str | None = None) -> ImageBlock:
        """Return the picture at an address, which the provider fetches; raises ValueError."""
        return ImageBlock(source=UrlSource(url=url), mime_type=mime_type or mime_type_of(url))

    @staticmethod
    def from_bytes(data: bytes, mime_type: str) -> ImageBlock:
        """Return the picture that the bytes are."""
        return ImageBlock(source=BytesSource(data=data), mime_type=mime_type)

    @staticmethod
    def from_base64(data: str, mime_type: str) -> ImageBlock:
        """Return the picture that the base64 text is."""
        return ImageBlock(source=Base64Source(data=data), mime_type=mime_type)


class Document:
    """Makes documents."""

    @staticmethod
    def from_path(path: str | Path, mime_type: str | None = None) -> DocumentBlock:
        """Return the document in a file, with its name as title; raises OSError, ValueError."""
        kind = mime_type or mime_type_of(path)
        data = Path(path).read_bytes()
        if kind.startswith("text/"):
            return Document.from_text(data.decode(), kind, title=Path(path).name)
        return Document.from_bytes(data, kind, title=Path(path).name)

    @staticmethod
    def from_url(
        url: str, mime_type: str | None = None, *, title: str | None = None
    ) -> DocumentBlock:
        """Return the document at an address, which the provider fetches; raises ValueError."""
        kind = mime_type or mime_type_of(url)
        return DocumentBlock(source=UrlSource(url=url), mime_type=kind, title=title)

    @staticmethod
    def from_bytes(data: bytes, mime_type: str, *, title: str | None = None) -> DocumentBlock:
        """Return the document that the bytes are."""
        encoded = b64encode(data).decode()
        return Document.from_base64(encoded, mime_type, title=title)

    @staticmethod
    def from_base64(data: str, mime_type: str, *, title: str | None = None) -> DocumentBlock:
        """Return the document that the base64 text is."""
        return DocumentBlock(source=Base64Source(data=data), mime_type=mime_type, title=title)

    @staticmethod
    def from_text(
        text: str, mime_type: str = "text/plain", *, title: str | None = None
    ) -> DocumentBlock:
        """Return a document of plain text."""
        return DocumentBlock(source=TextSource(data=text), mime_type=mime_type, title=title)


class Audio:
    """Makes sounds."""

    @staticmethod
    def from_path(path: str | Path, mime_type: str | None = None) -> AudioBlock:
        """Return the sound in a file; raises OSError, ValueError."""
        kind = mime_type or mime_type_of(path)
        return Audio.from_bytes(Path(path).read_bytes(), kind)

    @staticmethod
    def from_bytes(data: bytes, mime_type: str, *, duration: float | None = None) -> AudioBlock:
        """Return the sound that the bytes are; duration in seconds."""
        return AudioBlock(data=data, mime_type=mime_type, duration=duration)

    @staticmethod
    def from_base64(data: str, mime_type: str, *, duration: float | None = None) -> AudioBlock:
        """Return the sound that the base64 text is; raises ValueError."""
        return Audio.from_bytes(b64decode(data, validate=True), mime_type, duration=duration)


class Video:
    """Makes films."""

    @staticmethod
    def from_path(path: str | Path, mime_type: str | None = None) -> VideoBlock:
        """Return the film in a file; raises OSError, ValueError."""
        kind = mime_type or mime_type_of(path)
        return Video.from_bytes(Path(path).read_bytes(), kind)

    @staticmethod
    def from_bytes(data: bytes, mime_type: str, *, duration: float | None = None) -> VideoBlock:
        """Return the film that the bytes are; duration in seconds."""
        return VideoBlock(data=data, mime_type=mime_type, duration=duration)

    @staticmethod
    def from_base64(data: str, mime_type: str, *, duration: float | None = None) -> VideoBlock:
        """Return the film that the base64 text is; raises ValueError."""
        return Video.from_bytes(b64decode(data, validate=True), mime_type, duration=duration)
