"""The most pages that a PDF may have, as a model that reads it counts them.

A page tree may name one page many times, and the count it states is not trusted. Streams are
inflated within a bound; a file that cannot be read within it counts as the most pages a vendor
takes.
"""

from __future__ import annotations

import re
import zlib
from typing import Final

MOST_PAGES: Final = 1_000
"""No vendor takes a file with more."""
INFLATED_BYTES: Final = 16 * 1024 * 1024
"""How many bytes of a file's streams are inflated."""
STREAMS: Final = 100_000
"""How many streams of a file are visited."""
TEXT_OF_PAGE: Final = 6_000
"""Bytes of shown text that count as a page: two bytes may be a character, and so a token."""

_STREAM: Final = re.compile(rb"stream\r?\n")
_REFERENCES: Final = re.compile(rb"/Kids\s{0,9}\[([^\]]{0,200000})")
_COUNT: Final = re.compile(rb"/Count\s{0,9}(\d{1,9})")
_PAGE: Final = re.compile(rb"/Type\s{0,9}/Page(?![A-Za-z])")
_SHOWN: Final = re.compile(rb"\(([^()]{1,4096})|<([0-9A-Fa-f\s]{2,4096})>")
_NOT_SHOWN: Final = (
    b"/Image", b"/Length1", b"/FontFile", b"/XRef", b"/Metadata", b"/FunctionType",
    b"/Type1C", b"/CIDFontType0C", b"/OpenType",
)  # fmt: skip
_DICTIONARY: Final = 1_024


class _Unreadable(Exception):
    """The pages cannot be counted within the bounds."""


def most_pages(data: bytes) -> int:
    """Return the most pages a PDF may have; a page with much text counts as several."""
    if b"/Encrypt" in data:
        return MOST_PAGES
    try:
        structure, shown = _streams(data)
    except _Unreadable:
        return MOST_PAGES
    texts = (data, *structure)
    references = sum(
        len(kids.split(b"R")) - 1 for one in texts for kids in _REFERENCES.findall(one)
    )
    counts = (int(count) for one in texts for count in _COUNT.findall(one))
    pages = sum(len(_PAGE.findall(one)) for one in texts)
    found = max(pages, references, *counts, 0) if pages else MOST_PAGES
    return min(max(found, -(-shown // TEXT_OF_PAGE)), MOST_PAGES)


def _streams(data: bytes) -> tuple[list[bytes], int]:
    """Return the inflated object streams of a file, and the bytes of text that others show."""
    structure: list[bytes] = []
    shown, left, position = 0, INFLATED_BYTES, 0
    for _ in range(STREAMS):
        if (begin := _STREAM.search(data, position)) is None:
            return structure, shown
        end = data.find(b"endstream", begin.end())
        end = len(data) if end < 0 else end
        position = end + len(b"endstream")
        head = data[max(begin.start() - _DICTIONARY, 0) : begin.start()]
        head = head[head.rfind(b" obj") + 1 :]
        if any(name in head for name in _NOT_SHOWN) and b"/ObjStm" not in head:
            continue
        text = _inflated(data, begin.end(), end, head, left)
        left -= len(text)
        if b"/ObjStm" in head:
            structure.append(text)
        else:
            # Text as hex character codes is half as long.
            shown += sum(len(plain) + len(code) // 2 for plain, code in _SHOWN.findall(text))
    raise _Unreadable


def _inflated(data: bytes, start: int, end: int, head: bytes, most: int) -> bytes:
    """Return the bytes of a stream; raises _Unreadable if too long, and for other filters."""
    if b"/Filter" not in head:
        text = data[start:end]
    elif b"/ObjStm" in head and b"/Predictor" in head:
        raise _Unreadable
    elif b"/FlateDecode" in head and head.count(b"Decode") - head.count(b"DecodeParms") == 1:
        try:
            # The checksum at the end is ignored, as in readers.
            text = zlib.decompressobj().decompress(data[start:end], most + 1)
        except zlib.error:
            if b"/ObjStm" in head:
                raise _Unreadable from None
            return b""
    elif b"/ObjStm" in head or b"/FlateDecode" in head or b"/LZW" in head:
        raise _Unreadable
    else:
        return b""
    if len(text) > most:
        raise _Unreadable
    return text
