"""The bytes of PDF streams after their filters (ISO 32000-2, 7.4), within a limit.

Lengths are not trusted: a stream has at least the bytes that any reader may take.
"""

from __future__ import annotations

import base64
import re
import zlib
from typing import TYPE_CHECKING, Final

from chat_app.contents.pdf.objects import Dictionary, Name, Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable

    from chat_app.contents.pdf.objects import Value

INPUT_BYTES: Final = 256 * 1024 * 1024
"""How many bytes are inflated; streams may overlap."""
_DEFLATE: Final = 0x0800
_CHUNK: Final = 4_096
_LARGEST_CHUNK: Final = 1024 * 1024
_FULL_NAMES: Final = {
    b"Fl": b"FlateDecode",
    b"AHx": b"ASCIIHexDecode",
    b"A85": b"ASCII85Decode",
}
_NOT_HEX: Final = re.compile(rb"[^0-9A-Fa-f]+")
_NOT_85: Final = re.compile(rb"[^!-uz]+")
_END: Final = re.compile(rb"[\0\t\n\f\r ]{0,16}endstream")


class Streams:
    """Decodes streams; all of them together have at most `limit` bytes."""

    def __init__(self, resolve: Callable[[Value], list[Value]], limit: int) -> None:
        """`resolve` returns the values that a value may stand for, none of them a reference."""
        self._resolve = resolve
        self._bytes_left = limit
        self._input_left = INPUT_BYTES

    def decoded(self, about: Dictionary, data: bytes, start: int) -> bytes:
        """Return the bytes of a stream; raises Unreadable for filters that are not supported."""
        filters = self._filters(about)
        if filters and self._has_predictor(about):
            raise Unreadable
        if filters and filters[0] == b"FlateDecode":
            # The data states its own end.
            encoded: bytes | memoryview = memoryview(data)[start:]
        else:
            encoded = data[start : self._end(about, data, start)]
        for name in filters:
            encoded = self._without(name, encoded)
        text = bytes(encoded) if isinstance(encoded, memoryview) else encoded
        if not filters or filters[-1] != b"FlateDecode":
            self._take(len(text))
        return text

    def integers(self, values: list[Value]) -> set[int]:
        """Return the integers that values may stand for."""
        return {
            number for value in values for number in self._resolve(value) if isinstance(number, int)
        }

    def _filters(self, about: Dictionary) -> list[bytes]:
        """Return the names of the filters; raises Unreadable unless they are unambiguous."""
        lists: list[list[bytes]] = []
        for value in about.all(b"Filter"):
            for entry in self._resolve(value):
                names: list[bytes] = []
                for item in entry if isinstance(entry, list) else [entry]:
                    resolved = self._resolve(item)
                    if len(resolved) != 1 or not isinstance(resolved[0], Name | None):
                        raise Unreadable
                    if (name := resolved[0]) is not None:
                        names.append(_FULL_NAMES.get(bytes(name), bytes(name)))
                lists.append(names)
        if len({tuple(names) for names in lists}) > 1:
            raise Unreadable
        return lists[0] if lists else []

    def _has_predictor(self, about: Dictionary) -> bool:
        for value in about.all(b"DecodeParms", b"DP"):
            for entry in self._resolve(value):
                for item in entry if isinstance(entry, list) else [entry]:
                    for parameters in self._resolve(item):
                        if isinstance(parameters, Dictionary) and self.integers(
                            parameters.all(b"Predictor")
                        ) - {1}:
                            return True
        return False

    def _end(self, about: Dictionary, data: bytes, start: int) -> int:
        first = data.find(b"endstream", start)
        ends = [len(data) if first < 0 else first]
        lengths = self.integers(about.all(b"Length"))
        ends += [start + size for size in lengths if size > 0 and _END.match(data, start + size)]
        return max(ends)

    def _without(self, name: bytes, encoded: bytes | memoryview) -> bytes:
        """Return the data that a filter encoded."""
        try:
            match name:
                case b"FlateDecode":
                    return self._inflated(encoded)
                case b"ASCIIHexDecode":
                    digits = _NOT_HEX.sub(b"", bytes(encoded).partition(b">")[0])
                    return bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode())
                case b"ASCII85Decode":
                    text = bytes(encoded).strip().removeprefix(b"<~").partition(b"~")[0]
                    return base64.a85decode(_NOT_85.sub(b"", text))
        except (ValueError, zlib.error):
            raise Unreadable from None
        raise Unreadable

    def _inflated(self, encoded: bytes | memoryview) -> bytes:
        # The checksum at the end is ignored, as in readers.
        header = int.from_bytes(encoded[:2])
        if header % 31 or header & 0x0F20 != _DEFLATE:
            raise Unreadable
        inflater, parts = zlib.decompressobj(-15), []
        position, size = 2, _CHUNK
        while not inflater.eof:
            chunk = encoded[position : position + size]
            self._input_left -= len(chunk)
            if not chunk or self._input_left < 0:
                # Readers save what they can of broken data, each in a different way.
                raise Unreadable
            parts.append(inflater.decompress(chunk, self._bytes_left + 1))
            self._take(len(parts[-1]))
            position, size = position + size, min(size * 2, _LARGEST_CHUNK)
        return b"".join(parts)

    def _take(self, size: int) -> None:
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise Unreadable
