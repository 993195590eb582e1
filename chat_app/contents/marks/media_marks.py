"""Adds an XMP packet to WebP, WAV, MP3, MP4 and PDF files, where their format has a place for it.

The places are those of XMP part 3; the media data stay as they are, byte for byte. A file whose
structure is not understood to its end is left unchanged.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_RIFF_HEAD: Final = 12
_MAX_RIFF: Final = 2**32 - 2
_VP8X: Final = b"VP8X"
_VP8X_HAS_XMP: Final = 0x04
_ID3_HEAD: Final = 10
_ID3_VERSIONS: Final = {3, 4}
_MAX_ID3: Final = 2**28 - 1
_XMP_BOX: Final = bytes.fromhex("be7acfcb97a942e89c71999491e3afac")
_BOX_HEAD: Final = 8
_BOX_LARGE_HEAD: Final = 16
_TABLE_ENTRY: Final = 20
_MAX_TRAILER: Final = 4_096
_MAX_CATALOG: Final = 65_536
_PDF_END: Final = re.compile(rb"startxref\s+(\d{1,10})\s+%%EOF\s*\Z")
_PDF_TABLE: Final = re.compile(
    rb"xref\s+((?:\d{1,10} \d{1,10}\s+(?:\d{10} \d{5} [fn]..)*)+)", re.DOTALL
)
_PDF_SECTION: Final = re.compile(rb"(\d{1,10}) (\d{1,10})\s+((?:\d{10} \d{5} [fn]..)*)", re.DOTALL)
_PDF_TRAILER: Final = re.compile(rb"trailer\s*<<(.*)>>\s*startxref", re.DOTALL)


def in_webp(data: bytes, packet: bytes) -> bytes:
    """Return an extended WebP file with the packet; simple files have no place for one."""
    chunks = list(_chunks(data, b"WEBP"))
    if not chunks or chunks[0] != (_VP8X, _RIFF_HEAD, 10):
        return data
    marked = bytearray(_with_chunk(data, b"XMP ", packet))
    marked[_RIFF_HEAD + 8] |= _VP8X_HAS_XMP
    return bytes(marked)


def in_wave(data: bytes, packet: bytes) -> bytes:
    """Return a WAV file with the packet after its samples."""
    names = [name for name, _, _ in _chunks(data, b"WAVE")]
    if b"fmt " not in names or b"data" not in names or b"_PMX" in names:
        return data
    return _with_chunk(data, b"_PMX", packet)


def _chunks(data: bytes, kind: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield name, place and size of the chunks of a RIFF file; nothing if they do not fill it."""
    if data[:4] != b"RIFF" or data[8:_RIFF_HEAD] != kind:
        return
    if struct.unpack_from("<I", data, 4)[0] + 8 != len(data):
        return
    chunks: list[tuple[bytes, int, int]] = []
    place = _RIFF_HEAD
    while place + 8 <= len(data):
        (size,) = struct.unpack_from("<I", data, place + 4)
        chunks.append((data[place : place + 4], place, size))
        place += 8 + size + size % 2
    if place == len(data):
        yield from chunks


def _with_chunk(data: bytes, name: bytes, body: bytes) -> bytes:
    added = name + struct.pack("<I", len(body)) + body + bytes(len(body) % 2)
    size = len(data) + len(added) - 8
    if size > _MAX_RIFF:
        return data
    return data[:4] + struct.pack("<I", size) + data[8:] + added


def in_mp3(data: bytes, packet: bytes) -> bytes:
    """Return an MP3 file with the packet as the first frame of its ID3v2 tag, or in a new tag."""
    body = b"XMP\0" + packet
    if data[:3] != b"ID3":
        if data[:1] != b"\xff" or data[1:2] < b"\xe0":
            return data
        frame = b"PRIV" + struct.pack(">I", len(body)) + b"\0\0" + body
        return b"ID3\x03\0\0" + _syncsafe(len(frame)) + frame + data
    version, flags, size = data[3:4], data[5:6], data[6:_ID3_HEAD]
    # With flags, the frames do not begin here, or are encoded.
    if version not in (b"\x03", b"\x04") or flags != b"\0" or not size.isascii():
        return data
    length = _syncsafe(len(body)) if version == b"\x04" else struct.pack(">I", len(body))
    frame = b"PRIV" + length + b"\0\0" + body
    total = sum(byte << shift for byte, shift in zip(size, (21, 14, 7, 0), strict=True))
    if total + len(frame) > _MAX_ID3 or _ID3_HEAD + total > len(data):
        return data
    return data[:6] + _syncsafe(total + len(frame)) + frame + data[_ID3_HEAD:]


def _syncsafe(number: int) -> bytes:
    return bytes(number >> shift & 0x7F for shift in (21, 14, 7, 0))


def in_mp4(data: bytes, packet: bytes) -> bytes:
    """Return an MP4 file with the packet in a box of its own after the others."""
    if data[4:8] != b"ftyp":
        return data
    place = 0
    while place + _BOX_HEAD <= len(data):
        (size,) = struct.unpack_from(">I", data, place)
        least = _BOX_HEAD
        if size == 1 and place + _BOX_LARGE_HEAD <= len(data):
            (size,) = struct.unpack_from(">Q", data, place + _BOX_HEAD)
            least = _BOX_LARGE_HEAD
        # A box of size 0 extends to the end of the file: nothing can follow it.
        if size < least:
            return data
        place += size
    if place != len(data):
        return data
    body = b"uuid" + _XMP_BOX + packet
    return data + struct.pack(">I", len(body) + 4) + body


def in_pdf(data: bytes, packet: bytes) -> bytes:
    """Return a PDF file with the packet as its metadata, in an incremental update.

    Files with encryption, metadata, signatures, or cross-reference streams are left unchanged.
    """
    end = _PDF_END.search(data[-64:])
    if end is None or b"/ByteRange" in data:
        return data
    start = int(end[1])
    table = _PDF_TABLE.match(data, start)
    trailer = _PDF_TRAILER.match(data, table.end(), table.end() + _MAX_TRAILER) if table else None
    if table is None or trailer is None or re.search(rb"/(?:Encrypt|XRefStm)\b", trailer[1]):
        return data
    root = re.search(rb"/Root\s+(\d{1,10})\s+0\s+R\b", trailer[1])
    size = re.search(rb"/Size\s+(\d{1,9})\b", trailer[1])
    if root is None or size is None:
        return data
    catalog = _catalog(data, table[1], int(root[1]))
    if catalog is None or b"/Metadata" in catalog:
        return data
    new = int(size[1])
    rest = re.sub(rb"/(?:Size|Prev)\s+\d+", b"", trailer[1])
    file = bytearray(data if data.endswith((b"\n", b"\r")) else data + b"\n")
    places = {new: len(file)}
    file += b"%d 0 obj\n<< /Type /Metadata /Subtype /XML /Length %d >>\n" % (new, len(packet))
    file += b"stream\n%b\nendstream\nendobj\n" % packet
    places[int(root[1])] = len(file)
    file += b"%b 0 obj\n<<%b /Metadata %d 0 R >>\nendobj\n" % (root[1], catalog, new)
    at = len(file)
    file += b"xref\n0 1\n0000000000 65535 f \n"
    for number in sorted(places):
        file += b"%d 1\n%010d 00000 n \n" % (number, places[number])
    file += b"trailer\n<< /Size %d /Prev %d %b >>\nstartxref\n%d\n%%%%EOF\n" % (
        new + 1, start, rest.strip(), at,
    )  # fmt: skip
    return bytes(file)


def _catalog(data: bytes, table: bytes, number: int) -> bytes | None:
    """Return the text between the brackets of the catalog of a cross-reference table."""
    for section in _PDF_SECTION.finditer(table):
        index = number - int(section[1])
        entry = section[3][_TABLE_ENTRY * index : _TABLE_ENTRY * (index + 1)] if index >= 0 else b""
        if entry[17:18] == b"n":
            row = re.compile(rb"%d 0 obj\s*<<(.*?)>>\s*endobj" % number, re.DOTALL)
            place = int(entry[:10])
            match = row.match(data, place, place + _MAX_CATALOG)
            return match[1] if match and b"stream" not in match[1] else None
    return None
