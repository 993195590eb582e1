"""The objects of a PDF file (ISO 32000-2, 7.3 and 7.5), parsed where they are needed.

A cross-reference table may point anywhere, even into a comment or a stream. It is not read: each
object that the bytes contain counts, and a number may have several definitions.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKENS: Final = 1_000_000
"""How many tokens of a file are read."""
OBJECTS: Final = 500_000
"""How many objects a file may have."""
_NESTING: Final = 50
_GAP: Final = 4_096
"""The most blanks and comments between a key and its value."""
_FOLLOWING: Final = 9

_SPACE: Final = rb"\0\t\n\f\r "
_REGULAR: Final = rb"[^\0\t\n\f\r ()<>\[\]{}/%]"
_BLANK: Final = rb"(?:[" + _SPACE + rb"]|%[^\r\n]{0,64}[\r\n])"
_BEGIN: Final = re.compile(
    rb"(?<!\d)(\d{1,10})[" + _SPACE + rb"]{1,8}\d{1,10}[" + _SPACE + rb"]{0,8}obj"
)
_BLANKS: Final = re.compile(rb"(?:[" + _SPACE + rb"]++|%[^\r\n]*+)*+")
_SPACES: Final = re.compile(rb"[" + _SPACE + rb"]*+")
_TOKEN: Final = re.compile(
    rb"<<|>>|[\[\]{}()]|/" + _REGULAR + rb"*+|<[^<>]*+>|" + _REGULAR + rb"++"
)
_REFERENCE: Final = re.compile(
    rb"[+-]?(\d{1,10})" + _BLANK + rb"++[+-]?\d{1,10}" + _BLANK + rb"++R(?![A-Za-z])"
)
_INTEGER: Final = re.compile(rb"[+-]?\d{1,18}")
_PART_OF_STRING: Final = re.compile(rb"[^()\\]*+(?:\\.[^()\\]*+)*+([()])", re.DOTALL)
_ESCAPED: Final = re.compile(rb"#([0-9A-Fa-f]{2})")
_STREAM: Final = re.compile(rb"stream(?:\r\n|\n|\r)?")


class Unreadable(Exception):
    """The file cannot be measured: it counts as the most."""


class Name(bytes):
    """A name, without its slash and with its escapes resolved."""

    __slots__ = ()


class Reference(NamedTuple):
    """A reference to an object; generations do not matter."""

    number: int


class PdfString(NamedTuple):
    """A string, of which only the size in bytes matters."""

    size: int


class Dictionary:
    """The entries of a dictionary; readers differ in which of several with one key they take."""

    __slots__ = ("entries",)

    def __init__(self, entries: list[tuple[bytes, Value]]) -> None:
        self.entries = entries

    def all(self, *keys: bytes) -> list[Value]:
        """Return the values of all entries with one of these keys."""
        return [value for key, value in self.entries if key in keys]


Value = Name | Reference | PdfString | Dictionary | list["Value"] | int | None
"""Other values do not matter: they are None."""


@dataclass(frozen=True, slots=True)
class Definition:
    """One definition of an object, and where the bytes of its stream begin."""

    value: Value
    stream: int | None = None


class ObjectText:
    """Bytes that contain objects at known offsets: the file, or an object stream."""

    def __init__(self, data: bytes, places: list[tuple[int, int]]) -> None:
        """`places` holds the numbers of objects, and the offsets of their values."""
        self.data = data
        self.places = sorted(places, key=lambda place: place[1])
        self.offsets = [offset for _, offset in self.places]
        self.names: set[int] = set()
        """The offsets of all names that were read as such."""
        self._tokens_left = TOKENS
        self._definitions: dict[int, Definition] = {}

    def at(self, offset: int) -> Definition:
        """Return the object at an offset; raises Unreadable."""
        if offset not in self._definitions:
            value, end = self._value(offset, 0)
            begin = _STREAM.match(self.data, self._blanks(end))
            stream = begin.end() if begin and isinstance(value, Dictionary) else None
            self._definitions[offset] = Definition(value, stream)
        return self._definitions[offset]

    def around(self, position: int) -> tuple[int, Definition] | None:
        """Return the object before or around a position, and its number."""
        index = bisect_right(self.offsets, position) - 1
        return (self.places[index][0], self.at(self.offsets[index])) if index >= 0 else None

    def follows(self, position: int) -> bytes:
        """Return the first bytes after blanks and comments."""
        start = self._blanks(position)
        if start - position > _GAP:
            raise Unreadable
        return self.data[start : start + _FOLLOWING]

    def value(self, position: int) -> Value:
        """Return the value at a position; raises Unreadable."""
        return self._value(position, 0)[0]

    def _blanks(self, position: int) -> int:
        match = _BLANKS.match(self.data, position)
        return match.end() if match else position

    def _spaces(self, position: int) -> int:
        match = _SPACES.match(self.data, position)
        return match.end() if match else position

    def _value(self, position: int, depth: int) -> tuple[Value, int]:
        """Return the value at a position, and where it ends."""
        start = self._blanks(position)
        token = _TOKEN.match(self.data, start)
        self._tokens_left -= 1
        if token is None or depth > _NESTING or self._tokens_left < 0:
            raise Unreadable
        kind, end = token[0], token.end()
        if kind == b"<<":
            return self._dictionary(end, depth)
        if kind == b"[":
            return self._array(end, depth)
        if kind == b"(":
            return self._string(end)
        if kind in {b">>", b"]", b")"}:
            raise Unreadable
        if kind.startswith(b"/"):
            self.names.add(start)
            return name_of(kind[1:]), end
        if reference := _REFERENCE.match(self.data, start):
            return Reference(int(reference[1])), reference.end()
        if kind[-1:].isdigit() and self.data.startswith(b"%", self._spaces(end)):
            # A comment too long to be read may divide a reference.
            raise Unreadable
        return _simple(kind), end

    def _array(self, position: int, depth: int) -> tuple[Value, int]:
        values: list[Value] = []
        while not self.data.startswith(b"]", position := self._blanks(position)):
            value, position = self._value(position, depth + 1)
            values.append(value)
        return values, position + 1

    def _dictionary(self, position: int, depth: int) -> tuple[Value, int]:
        entries: list[tuple[bytes, Value]] = []
        while not self.data.startswith(b">>", position := self._blanks(position)):
            key, position = self._value(position, depth + 1)
            if not isinstance(key, Name):
                raise Unreadable
            value, position = self._value(position, depth + 1)
            entries.append((key, value))
        return Dictionary(entries), position + 2

    def _string(self, position: int) -> tuple[PdfString, int]:
        begin, depth = position, 1
        while depth:
            part = _PART_OF_STRING.match(self.data, position)
            self._tokens_left -= 1
            if part is None or self._tokens_left < 0:
                raise Unreadable
            depth += 1 if part[1] == b"(" else -1
            position = part.end()
        return PdfString(position - 1 - begin), position


def _simple(kind: bytes) -> Value:
    """Return the value of a token that stands alone: a hexadecimal string, a number, or another."""
    if kind.startswith(b"<"):
        return PdfString(len(kind) // 2)
    return int(kind) if _INTEGER.fullmatch(kind) else None


def dictionaries(value: Value) -> Iterator[Dictionary]:
    """Yield the dictionaries in a value, and the value itself if it is one."""
    if isinstance(value, Dictionary):
        yield value
        for _, child in value.entries:
            yield from dictionaries(child)
    elif isinstance(value, list):
        for child in value:
            yield from dictionaries(child)


def all_under(value: Value, key: bytes) -> list[Value]:
    """Return the values of a key in a value and all that is in it."""
    return [item for dictionary in dictionaries(value) for item in dictionary.all(key)]


def text_of_file(data: bytes) -> ObjectText:
    """Return a file with all objects that it contains outside object streams."""
    places = []
    for begin in _BEGIN.finditer(data):
        places.append((int(begin[1]), begin.end()))
        if len(places) > OBJECTS:
            raise Unreadable
    return ObjectText(data, places)


def name_of(raw: bytes) -> Name:
    """Return a name as readers understand it: #xx is a byte."""
    if b"#" in raw:
        raw = _ESCAPED.sub(lambda match: bytes.fromhex(match[1].decode()), raw)
    return Name(raw)


class Keys:
    """Finds names in bytes, however they are spelled, without parsing what is around them."""

    def __init__(self, *names: bytes) -> None:
        spelled = b"|".join(
            b"".join(b"(?:%s|#%s)" % (re.escape(bytes([byte])), b"%02x" % byte) for byte in name)
            for name in names
        )
        # The digits of an escape may be in either case.
        self._pattern = re.compile(rb"/(" + _either_case(spelled) + rb")(?!" + _REGULAR + rb")")

    def within(self, data: bytes) -> Iterator[tuple[Name, int, int]]:
        """Yield each name, where it begins and where it ends."""
        for match in self._pattern.finditer(data):
            yield name_of(match[1]), match.start(), match.end()


def _either_case(pattern: bytes) -> bytes:
    def of_escape(match: re.Match[bytes]) -> bytes:
        return b"#" + b"".join(
            b"[%s%s]" % (digit, digit.upper()) if digit.isalpha() else digit
            for digit in (match[1], match[2])
        )

    return re.sub(rb"#([0-9a-f])([0-9a-f])", of_escape, pattern)
