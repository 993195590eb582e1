"""Marks files that agents make, inside the file: IPTC's DigitalSourceType as XMP.

PNG has it in an iTXt chunk, JPEG in an APP1 segment (XMP part 3); other types are in `media_marks`.
A file that already has XMP or C2PA metadata, and one with another structure, is left unchanged.
"""

from __future__ import annotations

import re
import struct
import zlib
from typing import Final

from chat_app.contents.marks import media_marks
from uamp.digital_source import AI_MADE

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_PNG_HEAD: Final = len(_PNG) + 25
_PNG_KEYWORD: Final = b"XML:com.adobe.xmp"
_JPEG: Final = b"\xff\xd8"
_JPEG_NAME: Final = b"http://ns.adobe.com/xap/1.0/\0"
_JFIF: Final = b"\xff\xe0"
# Metadata that an addition would contradict, or whose hash it would break.
_OTHERS: Final = (_PNG_KEYWORD, _JPEG_NAME, b"<x:xmpmeta")
# How C2PA's data begin in every format: a JUMBF box (ISO 19566-5) whose first box describes it.
_C2PA: Final = re.compile(rb"jumb.{4}jumd", re.DOTALL)
_PACKET: Final = (
    '<?xpacket begin="\N{ZERO WIDTH NO-BREAK SPACE}" id="W5M0MpCehiHzreSzNTczkc9d"?>'
    '<x:xmpmeta xmlns:x="adobe:ns:meta/">'
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    '<rdf:Description rdf:about=""'
    ' xmlns:Iptc4xmpExt="http://iptc.org/std/Iptc4xmpExt/2008-02-29/"'
    f' Iptc4xmpExt:DigitalSourceType="{AI_MADE}"/>'
    "</rdf:RDF></x:xmpmeta>"
    '<?xpacket end="r"?>'
).encode()

_PLACES: Final = {
    "application/pdf": media_marks.in_pdf,
    "audio/mp4": media_marks.in_mp4,
    "audio/mpeg": media_marks.in_mp3,
    "audio/wav": media_marks.in_wave,
    "image/webp": media_marks.in_webp,
    "video/mp4": media_marks.in_mp4,
}


def with_mark(data: bytes, mime_type: str) -> bytes:
    """Return a file with the mark; one without a place for it unchanged."""
    if any(other in data for other in _OTHERS) or _C2PA.search(data):
        return data
    if mime_type == "image/png" and data.startswith(_PNG) and data[12:16] == b"IHDR":
        return data[:_PNG_HEAD] + _chunk() + data[_PNG_HEAD:]
    if mime_type == "image/jpeg" and data.startswith(_JPEG):
        place = len(_JPEG)
        if data[place : place + 2] == _JFIF:
            # JFIF's own segment comes first.
            place += 2 + int.from_bytes(data[place + 2 : place + 4], "big")
        return data[:place] + _segment() + data[place:]
    put = _PLACES.get(mime_type)
    return put(data, _PACKET) if put else data


def _chunk() -> bytes:
    """Return an iTXt chunk: keyword, uncompressed, without a language."""
    body = b"iTXt" + _PNG_KEYWORD + b"\0" + b"\0\0" + b"\0" + b"\0" + _PACKET
    return struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))


def _segment() -> bytes:
    body = _JPEG_NAME + _PACKET
    return b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body
