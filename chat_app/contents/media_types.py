"""The media types of stored contents: declared, checked against the bytes, kept (UAMP §8.4.1)."""

from __future__ import annotations

import io
import re
from pathlib import PurePosixPath
from typing import Final

import puremagic
from PIL import Image, UnidentifiedImageError

IMAGE_FORMATS: Final = {
    "jpeg": "image/jpeg",
    "png": "image/png",
    "webp": "image/webp",
    "gif": "image/gif",
}
IMAGE_MAX_PIXELS: Final = 50_000_000
MAGIC_BYTES: Final = 4
DEFAULT_MIME: Final = "application/octet-stream"

# What a text without a type is, by the end of its name: programs such as curl send none for most.
_TEXT_TYPES: Final = {
    ".csv": "text/csv",
    ".json": "application/json",
    ".md": "text/markdown",
    ".tsv": "text/tab-separated-values",
    ".txt": "text/plain",
}
# Types that a browser would run as a page: stored and served as plain downloads.
_ACTIVE: Final = {"text/html", "image/svg+xml", "application/xhtml+xml", "text/xml"}
_MIME = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,62}/[a-z0-9][a-z0-9!#$&^_.+-]{0,62}")


class InvalidMedia(Exception):
    """The medium is not of its declared type, or cannot be read; the message is for its sender."""


def sniff(data: bytes, *, declared: str, filename: str = "") -> str:
    """Return the type to store: the declared one if the bytes agree.

    Data without a type, or with the one of any bytes, has the type that its bytes or its name show.
    Raises InvalidMedia when the bytes are an image, sound or document of another kind than they
    say, or a page that says it is something else.
    """
    declared = declared.split(";", maxsplit=1)[0].strip().lower() or DEFAULT_MIME
    if not _MIME.fullmatch(declared):
        raise InvalidMedia(f"{declared[:80]!r} is not a media type.")
    if declared == DEFAULT_MIME:
        return _undeclared(data, filename)
    if declared.startswith("image/") and declared not in _ACTIVE:
        found = IMAGE_FORMATS.get(format_of_image(data), "")
        if found != declared:
            raise InvalidMedia(f"The data is not {declared}; send it with its real type.")
        return declared
    found = _magic(data)
    if found and _contradicts(found, declared):
        raise InvalidMedia(
            f"{filename or 'The data'} is declared as {declared} but looks like {found}; "
            "send it with its real type."
        )
    return declared


def _undeclared(data: bytes, filename: str) -> str:
    """Return the type of data that came without one; DEFAULT_MIME where nothing shows it."""
    found = _magic(data)
    if found in IMAGE_FORMATS.values():
        try:
            return IMAGE_FORMATS.get(format_of_image(data), DEFAULT_MIME)
        except InvalidMedia:
            # It is not shown as a picture, but it can be kept and downloaded.
            return DEFAULT_MIME
    if found == "application/pdf" or found.partition("/")[0] in {"audio", "video"}:
        return found if _MIME.fullmatch(found) else DEFAULT_MIME
    named = _TEXT_TYPES.get(PurePosixPath(filename).suffix.lower(), "")
    return named if named and _is_text(data) else DEFAULT_MIME


def _is_text(data: bytes) -> bool:
    if b"\0" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def format_of_image(data: bytes) -> str:
    """Return the format of an image that can be read, in small letters; InvalidMedia for none."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            if image.width * image.height > IMAGE_MAX_PIXELS:
                raise InvalidMedia("The image has more than 50 megapixels.")
            image.verify()
            return (image.format or "").lower()
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise InvalidMedia("The data is not an image that can be read.") from error
    except Image.DecompressionBombError as error:
        raise InvalidMedia("The image has too many pixels.") from error


def _magic(data: bytes) -> str:
    """Return the type that the first bytes prove, or '' where they prove nothing."""
    try:
        matches = puremagic.magic_string(data[:4096])
    except (puremagic.PureError, ValueError):
        return ""
    # One or two equal bytes prove nothing.
    proven = (str(m.mime_type) for m in matches[:1] if len(m.byte_match or b"") >= MAGIC_BYTES)
    return next(proven, "")


def _contradicts(found: str, declared: str) -> bool:
    """Compare by family: container formats and text have many names, an executable has one."""
    if found == declared:
        return False
    families = {"image", "audio", "video"}
    kind, said = found.split("/", maxsplit=1)[0], declared.split("/", maxsplit=1)[0]
    if "pdf" in (found.split("/")[1], declared.split("/")[1]):
        return True
    if kind in families or said in families:
        # webm, mp4 and ogg hold sound or film alike.
        return kind != said and {kind, said} != {"audio", "video"}
    return found in _ACTIVE and said != "text"
