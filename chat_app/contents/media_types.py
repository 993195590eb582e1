"""The media types of stored contents: the bytes decide, labels are hints (UAMP §8.4.1)."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final

from PIL import Image, UnidentifiedImageError

from chat_app.contents import signatures
from chat_app.contents.pictures import open_picture
from chat_app.contents.sound.mpeg import frame_type

IMAGE_FORMATS: Final = {
    "jpeg": "image/jpeg",
    "png": "image/png",
    "webp": "image/webp",
    "gif": "image/gif",
}
"""The picture types that browsers and models see as pictures; other types are files."""
IMAGE_MAX_PIXELS: Final = 50_000_000
DEFAULT_MIME: Final = "application/octet-stream"

# Picture types that the bytes prove: data without the proof is refused.
_PROVEN_PICTURES: Final = {
    *IMAGE_FORMATS.values(),
    "image/avif",
    "image/bmp",
    "image/heic",
    "image/heif",
    "image/jp2",
    "image/jxl",
    "image/tiff",
}
_ALIASES: Final = {
    alias: kind
    for kind, aliases in {
        "image/jpeg": "image/jpg image/pjpeg image/jfif image/jpe image/x-jpeg image/x-jpg",
        "image/png": "image/x-png image/apng image/vnd.mozilla.apng",
        "image/gif": "image/x-gif",
        "image/webp": "image/x-webp",
        "image/bmp": "image/x-ms-bmp image/x-bmp image/x-windows-bmp image/ms-bmp",
        "image/tiff": "image/tif image/x-tif image/x-tiff",
        "image/heic": "image/x-heic image/heic-sequence",
        "image/heif": "image/x-heif image/heif-sequence",
        "image/avif": "image/x-avif image/avif-sequence",
        "audio/mpeg": "audio/mp3 audio/x-mp3 audio/x-mpeg audio/mpeg3 audio/x-mpeg-3 audio/mpg"
        " audio/x-mpg audio/mpga",
        "audio/wav": "audio/x-wav audio/wave audio/vnd.wave audio/x-pn-wav",
        "audio/mp4": "audio/m4a audio/x-m4a audio/x-mp4",
        "audio/aac": "audio/x-aac audio/aacp audio/x-hx-aac-adts",
        "audio/flac": "audio/x-flac",
        "audio/ogg": "audio/x-ogg audio/opus audio/x-opus audio/x-opus+ogg audio/x-vorbis+ogg",
        "audio/aiff": "audio/x-aiff",
        "audio/midi": "audio/x-midi audio/mid",
        "audio/amr": "audio/x-amr",
        "audio/webm": "audio/x-webm",
        "video/mp4": "video/x-m4v video/m4v video/x-mp4",
        "video/webm": "video/x-webm",
        "video/x-matroska": "video/matroska video/mkv",
        "video/x-msvideo": "video/avi video/msvideo video/vnd.avi",
        "video/mp2t": "video/mpegts video/mp2ts video/vnd.dlna.mpeg-tts video/x-mpegts",
        "video/ogg": "video/x-ogg",
        "application/pdf": "application/x-pdf application/acrobat text/pdf text/x-pdf",
        "application/json": "application/x-json text/json text/x-json",
        "application/zip": "application/x-zip-compressed application/x-zip",
        "text/csv": "application/csv application/x-csv text/x-csv text/comma-separated-values"
        " text/x-comma-separated-values",
        "text/tab-separated-values": "text/tsv text/x-tsv",
        "text/markdown": "text/x-markdown text/x-web-markdown",
        DEFAULT_MIME: "binary/octet-stream application/binary application/x-binary"
        " application/unknown application/x-download application/force-download",
    }.items()
    for alias in aliases.split()
}
# Containers for audio and video alike: only the label distinguishes them.
_CONTAINERS: Final = (
    {"audio/mp4", "video/mp4", "video/quicktime", "video/3gpp", "audio/3gpp", "video/3gpp2"},
    {"audio/webm", "video/webm", "video/x-matroska", "audio/x-matroska"},
    {"audio/ogg", "video/ogg", "application/ogg"},
    {"audio/mpeg", "audio/aac"},
    {"image/heic", "image/heif"},
)
_PLAIN_ENDINGS: Final = (
    ".txt .log .ts .mts .cts .tsx .js .mjs .cjs .jsx .py .rb .go .mod .rs .java .kt .c .h .cc .cpp"
    " .hpp .cs .swift .php .pl .lua .r .sh .sql .css .yaml .yml .toml .ini .cfg .conf .tex .srt"
    " .vtt .diff .patch .jsonl .ndjson"
)
# The type of a text by file extension, for texts whose label does not help: programs such as curl
# do not label most of them, and spreadsheets claim .csv.
_TEXT_TYPES: Final = {
    ".csv": "text/csv",
    ".json": "application/json",
    ".md": "text/markdown",
    ".tsv": "text/tab-separated-values",
    **dict.fromkeys(_PLAIN_ENDINGS.split(), "text/plain"),
}
_SPREADSHEETS: Final = {"application/vnd.ms-excel", "application/msexcel", "application/x-msexcel"}
_BINARY_KINDS: Final = {"audio", "video", "image", "font"}
# Types that text never has, whatever a label says; and those of vendors, whose name extensions
# programs share: `.rs`, `.pub`, `.mts`.
_BINARY: Final = re.compile(
    r"application/(?:pdf|zip|gzip|x-gzip|x-7z-compressed|x-tar|x-bzip2?|rls-services\+xml"
    r"|vnd\.openxmlformats-officedocument\..+)"
)
_VENDOR: Final = re.compile(r"(?:application/(?:vnd\.(?!.*\+json)|x-ms|ms)|model/|chemical/).+")
# Types that a browser would run as a page: stored and served as plain downloads.
_ACTIVE: Final = {"text/html", "image/svg+xml", "application/xhtml+xml", "text/xml"}
_MIME = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,62}/[a-z0-9][a-z0-9!#$&^_.+-]{0,62}")
PILLOW_FORMATS: Final = {
    # It opens MPO files, too; Pillow has no decoder of that name.
    "image/jpeg": ("JPEG",),
    "image/png": ("PNG",),
    "image/webp": ("WEBP",),
    "image/gif": ("GIF",),
}
"""The decoders of these types, which need little memory until the pixels are read."""


class InvalidMedia(Exception):
    """The medium is not valid as declared; the message is for its sender."""


def sniff(data: bytes, *, declared: str, filename: str = "") -> str:
    """Return the type to store: the one proven by the bytes, or else the declared one.

    Raises InvalidMedia for an unreadable picture.
    """
    label = canonical(declared)
    proven = _proven(data, label)
    if label in _PROVEN_PICTURES and not proven.startswith("image/"):
        raise InvalidMedia("The picture cannot be read.")
    if proven in PILLOW_FORMATS:
        return _picture(data, proven, label)
    if proven:
        return _proven_type(proven, label)
    if signatures.is_text(data):
        return _text_type(data, label, filename)
    named = _TEXT_TYPES.get(PurePosixPath(filename).suffix.lower(), "")
    is_unclear = label in _SPREADSHEETS | {DEFAULT_MIME} or label.startswith(("audio/", "video/"))
    if named and is_unclear and signatures.is_old_text(data):
        return named
    if label == DEFAULT_MIME:
        return _guessed(data)
    # Data falsely labelled with one of these types is neither displayed nor passed to a model.
    return DEFAULT_MIME if label in {"application/pdf", "video/mp2t"} else label


def canonical(declared: str) -> str:
    """Return a media type in lower case, without parameters, under its canonical name.

    A label that names no type, such as `image/*`, says nothing.
    """
    label = re.split("[;,]", declared, maxsplit=1)[0].strip(" \t\"'").lower()
    return _ALIASES.get(label, label) if _MIME.fullmatch(label) else DEFAULT_MIME


def _proven(data: bytes, label: str) -> str:
    proven = signatures.type_of(data)
    if proven or signatures.agrees(data, label):
        return proven or label
    return "" if signatures.is_text(data) else frame_type(data)


def picture_type(data: bytes) -> str:
    """Return the type of a picture by its bytes alone; raises InvalidMedia for anything else."""
    proven = signatures.type_of(data)
    if proven in PILLOW_FORMATS:
        check_picture(data, proven)
    elif not proven.startswith("image/"):
        raise InvalidMedia("The picture cannot be read.")
    return proven


def is_unchecked_picture(data: bytes, mime_type: str) -> bool:
    """Return whether stored data begin as a picture that was refused, and stored as a file."""
    return mime_type == DEFAULT_MIME and signatures.type_of(data) in PILLOW_FORMATS


def check_picture(data: bytes, mime_type: str) -> None:
    """Raise InvalidMedia for a picture that is unreadable or has too many pixels."""
    try:
        with open_picture(data, formats=PILLOW_FORMATS[mime_type]) as image:
            if image.width * image.height > IMAGE_MAX_PIXELS:
                raise InvalidMedia("The picture has more than 50 megapixels.")
            image.verify()
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise InvalidMedia("The picture cannot be read.") from error
    except Image.DecompressionBombError as error:
        raise InvalidMedia("The picture has too many pixels.") from error


def _picture(data: bytes, proven: str, label: str) -> str:
    try:
        check_picture(data, proven)
    except InvalidMedia:
        if label.startswith("image/"):
            raise
        # It is not shown as a picture, but can be stored and downloaded.
        return DEFAULT_MIME
    return proven


def _proven_type(proven: str, label: str) -> str:
    """Return the proven type, or a label that is more specific and does not contradict it."""
    sound = f"audio/{proven.partition('/')[2]}"
    for container in _CONTAINERS:
        if proven in container and label in container:
            return label
        if label.startswith("audio/") and {proven, sound} <= container:
            return sound
    # Raw photographs are TIFF files of a special kind.
    is_special = label.startswith("image/") and label not in _PROVEN_PICTURES | _ACTIVE
    return label if is_special and proven.startswith("image/") else proven


def _text_type(data: bytes, label: str, filename: str) -> str:
    """Return the type of a text: its label, if that is a text type."""
    kind = label.partition("/")[0]
    is_xml = label.endswith(("/xml", "+xml")) and signatures.is_markup(data)
    if kind == "text" or label in _ACTIVE or is_xml:
        return label
    named = _TEXT_TYPES.get(PurePosixPath(filename).suffix.lower(), "")
    page = signatures.page_type(data)
    if label == DEFAULT_MIME:
        return DEFAULT_MIME if page else named or DEFAULT_MIME
    if page:
        return page
    if label in _SPREADSHEETS:
        return named or "text/csv"
    if kind in _BINARY_KINDS or _BINARY.match(label):
        return named or "text/plain"
    return named if named and _VENDOR.match(label) else label


def _guessed(data: bytes) -> str:
    """Return the type of unlabelled data without a known signature."""
    guess = signatures.guessed_type(data)
    if guess.partition("/")[0] in {"audio", "video", "image"} and guess not in _PROVEN_PICTURES:
        return canonical(guess) if _MIME.fullmatch(guess) else DEFAULT_MIME
    return DEFAULT_MIME
