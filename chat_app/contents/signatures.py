"""Media types that the bytes of a file prove, whatever its label and name."""

from __future__ import annotations

import codecs
import re
from typing import Final

import puremagic

# How many matching bytes of a signature outside the table below prove a type.
_MAGIC_BYTES: Final = 4
_HEAD_BYTES: Final = 4096

_STARTS: Final = (
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"II+\0", "image/tiff"),
    (b"MM\0+", "image/tiff"),
    (b"\0\0\0\x0cJXL \r\n\x87\n", "image/jxl"),
    (b"\0\0\0\x0cjP  \r\n\x87\n", "image/jp2"),
    (b"\xff\x4f\xff\x51", "image/j2c"),
    (b"8BPS\0\1", "image/vnd.adobe.photoshop"),
    (b"8BPS\0\2", "image/vnd.adobe.photoshop"),
    (b"ID3\2", "audio/mpeg"),
    (b"ID3\3", "audio/mpeg"),
    (b"ID3\4", "audio/mpeg"),
    (b"fLaC\0\0\0", "audio/flac"),
    (b"#!AMR", "audio/amr"),
    (b"caff\0\1", "audio/x-caf"),
    (b"MThd\0\0\0\6", "audio/midi"),
    (b"\0\0\1\xba", "video/mpeg"),
    (b"\0\0\1\xb3", "video/mpeg"),
    (b"FLV\1", "video/x-flv"),
)
# Chunked files: the first four bytes, and the four at offset 8.
_CHUNKED: Final = {
    (b"RIFF", b"WEBP"): "image/webp",
    (b"RIFF", b"WAVE"): "audio/wav",
    (b"RF64", b"WAVE"): "audio/wav",
    (b"RIFF", b"AVI "): "video/x-msvideo",
    (b"FORM", b"AIFF"): "audio/aiff",
    (b"FORM", b"AIFC"): "audio/aiff",
}
# Brands of an ISO base media file (ISO/IEC 14496-12), the more specific ones first.
_BRANDS: Final = (
    ({b"avif", b"avis", b"MA1A", b"MA1B"}, "image/avif"),
    ({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"}, "image/heic"),
    ({b"mif1", b"mif2", b"msf1", b"miaf"}, "image/heif"),
    ({b"crx "}, "image/x-canon-cr3"),
)
_MAJOR_BRANDS: Final = {
    b"M4A ": "audio/mp4",
    b"M4B ": "audio/mp4",
    b"M4P ": "audio/mp4",
    b"qt  ": "video/quicktime",
}
_BITMAP_HEADERS: Final = {12, 16, 40, 42, 46, 48, 52, 56, 60, 64, 108, 124}
_BITMAP_FILE_HEADER: Final = 14
# PDF readers accept the header within the first 1,024 bytes.
_PDF_BYTES: Final = 1024
_PDF: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*%PDF-")
# What these types begin with is too short to prove them without a label that agrees.
_WEAK_STARTS: Final = {"image/jxl": b"\xff\x0a"}
_ICON: Final = re.compile(rb"\0\0[\1\2]\0[\1-\x40]\0.{6}[\0-\x20]\0", re.DOTALL)
_TRANSPORT_PACKETS: Final = ((188, 0), (192, 4), (204, 0))
_SYNC_BYTE: Final = 0x47
_PACKETS: Final = 5
_PRINTABLE: Final = re.compile(rb"[ -~]")
_CONTROLS: Final = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f\x7f]")
# Possessive, so that there is one way to read each comment: the time is linear.
_PAGE: Final = re.compile(
    rb"\s*+(?:<\?xml[^>]*+>\s*+|<!--(?:(?!-->).)*+-->\s*+)*+"
    rb"<(!doctype\s+html|html|script|!doctype\s+svg|svg)[\s>]",
    re.IGNORECASE | re.DOTALL,
)


def type_of(data: bytes) -> str:
    """Return the media type that the bytes prove; '' if none."""
    proven = next((kind for start, kind in _STARTS if data.startswith(start)), "")
    proven = proven or _CHUNKED.get((data[:4], data[8:12]), "") or _container_type(data)
    if proven or _PDF.match(data[:_PDF_BYTES]):
        return proven or "application/pdf"
    if is_text(data):
        return ""
    if _is_bitmap(data):
        return "image/bmp"
    if _ICON.match(data):
        return "image/x-icon"
    return "video/mp2t" if _is_transport_stream(data) else ""


def agrees(data: bytes, label: str) -> bool:
    """Return whether data is of a type that its first bytes alone do not prove."""
    if label == "application/pdf":
        return b"%PDF-" in data[:_PDF_BYTES]
    return label in _WEAK_STARTS and data.startswith(_WEAK_STARTS[label])


def is_old_text(data: bytes) -> bool:
    """Return whether the bytes may be text in an encoding from before Unicode."""
    return _PRINTABLE.search(data) is not None and _CONTROLS.search(data) is None


def guessed_type(data: bytes) -> str:
    """Return the type of a less common format suggested by the first bytes; '' if none."""
    if is_text(data):
        return ""
    try:
        matches = puremagic.magic_string(data[:_HEAD_BYTES])
    except (puremagic.PureError, ValueError):
        return ""
    # One or two matching bytes prove nothing.
    types = (str(m.mime_type) for m in matches[:1] if len(m.byte_match or b"") >= _MAGIC_BYTES)
    return next(types, "")


def is_text(data: bytes) -> bool:
    """Return whether the bytes are text in UTF-8, or in UTF-16 with its byte order mark."""
    is_wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if is_wide else "utf-8")
    except UnicodeDecodeError:
        return False
    return bool(text) and "\0" not in text


def is_markup(data: bytes) -> bool:
    """Return whether a text begins like XML."""
    wide = data.replace(b"\0", b"")[:_HEAD_BYTES]
    return wide.removeprefix(codecs.BOM_UTF8).lstrip(b"\xff\xfe \t\r\n").startswith(b"<")


def page_type(data: bytes) -> str:
    """Return the type of a text that a browser would run as a page or a drawing; '' otherwise."""
    page = _PAGE.match(data[:_HEAD_BYTES].removeprefix(codecs.BOM_UTF8))
    if page is None:
        return ""
    return "image/svg+xml" if page[1].lower().endswith(b"svg") else "text/html"


def _container_type(data: bytes) -> str:
    if data.startswith(b"OggS\0"):
        return "video/ogg" if b"\x80theora" in data[:_HEAD_BYTES] else "audio/ogg"
    if data.startswith(b"\x1a\x45\xdf\xa3"):
        return "video/webm" if b"webm" in data[:_HEAD_BYTES] else "video/x-matroska"
    return _brand_type(data) if data[4:8] == b"ftyp" else ""


def _brand_type(data: bytes) -> str:
    """Return the type of an ISO base media file by its brands."""
    major, size = data[8:12], min(int.from_bytes(data[:4], "big"), _HEAD_BYTES)
    brands = {major, *(data[at : at + 4] for at in range(16, size, 4))}
    for names, kind in _BRANDS:
        if brands & names:
            return kind
    if major.startswith((b"3gp", b"3gr", b"3gs")):
        return "video/3gpp"
    return _MAJOR_BRANDS.get(major, "video/mp4")


def _is_bitmap(data: bytes) -> bool:
    """Return whether the bytes begin like a Windows bitmap: two letters alone prove nothing."""
    header, pixels = (int.from_bytes(data[at : at + 4], "little") for at in (14, 10))
    is_after = _BITMAP_FILE_HEADER + header <= pixels <= len(data)
    return data.startswith(b"BM") and header in _BITMAP_HEADERS and is_after


def _is_transport_stream(data: bytes) -> bool:
    """Return whether the bytes are packets of MPEG-TS, which all begin with the sync byte."""
    return any(
        len(data) >= size
        and all(data[at] == _SYNC_BYTE for at in range(first, len(data), size)[:_PACKETS])
        for size, first in _TRANSPORT_PACKETS
    )
