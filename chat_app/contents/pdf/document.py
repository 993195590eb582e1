"""The objects of a file and of its object streams together, by number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from chat_app.contents.pdf.objects import (
    Definition,
    Dictionary,
    Keys,
    ObjectText,
    PdfString,
    Reference,
    Unreadable,
    text_of_file,
)
from chat_app.contents.pdf.streams import Streams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chat_app.contents.pdf.objects import Name, Value

INFLATED_BYTES: Final = 32 * 1024 * 1024
"""How many bytes of a file's streams are decoded."""
_RESOLVED: Final = 8
"""How many references in a row are followed."""
_PACKED: Final = Keys(b"ObjStm", b"First")
_SEPARATE: Final = (b"[", b"<<")
_OF_FONT_PROGRAM: Final = b"256 array"
"""Follows the key Encoding in PostScript."""


class PdfDocument:
    """A PDF file; raises Unreadable where it cannot be understood."""

    def __init__(self, data: bytes) -> None:
        self._texts = [text_of_file(data)]
        self._places: dict[int, list[tuple[ObjectText, int]]] = {}
        self._text_sizes: dict[int, int] = {}
        self._list(self._texts[0])
        self.streams = Streams(self.resolve, INFLATED_BYTES)
        self._open_object_streams(self._texts[0])

    def definitions(self, number: int) -> list[Definition]:
        """Return all definitions of an object."""
        return [text.at(offset) for text, offset in self._places.get(number, ())]

    def definitions_of(self, value: Value) -> list[Definition]:
        """Return all definitions of what a value refers to; none if it is not a reference."""
        return self.definitions(value.number) if isinstance(value, Reference) else []

    def size_of_text(self, value: Value, depth: int = 0) -> int:
        """Return the size of a string or of several, wherever they are, also as a stream."""
        if depth > _RESOLVED:
            raise Unreadable
        if isinstance(value, PdfString):
            return value.size
        if isinstance(value, list):
            return sum(self.size_of_text(item, depth + 1) for item in value)
        if not isinstance(value, Reference):
            return 0
        if value.number not in self._text_sizes:
            sizes = [
                self.size_of_text(about.value, depth + 1) if stream is None else len(stream)
                for about in self.definitions_of(value)
                for stream in (self.decoded(about),)
            ]
            self._text_sizes[value.number] = max(sizes, default=0)
        return self._text_sizes[value.number]

    def texts_of(self, keys: Keys) -> int:
        """Return the size of all strings with one of these keys, wherever they are."""
        return sum(
            self.size_of_text(text.value(end))
            for text in self._texts
            for _, _, end in keys.within(text.data)
        )

    def resolve(self, value: Value) -> list[Value]:
        """Return the values that a value may stand for."""
        values = [value]
        for _ in range(_RESOLVED):
            if not any(isinstance(item, Reference) for item in values):
                return values
            values = [
                target
                for item in values
                for target in (
                    [about.value for about in self.definitions(item.number)]
                    if isinstance(item, Reference)
                    else [item]
                )
            ]
        raise Unreadable

    def decoded(self, about: Definition) -> bytes | None:
        """Return the decoded bytes of an object's stream; None if it has none."""
        if about.stream is None or not isinstance(about.value, Dictionary):
            return None
        return self.streams.decoded(about.value, self._texts[0].data, about.stream)

    def objects_with(self, keys: Keys) -> Iterator[tuple[Name, int, Definition]]:
        """Yield the objects with one of these keys, and a number, array or dictionary as its value.

        Yields the key, the number of the object and the object. Raises Unreadable if the name
        stands where no object was found: a reader may find one there.
        """
        for text in self._texts:
            for name, start, end in keys.within(text.data):
                follows = text.follows(end)
                if not (follows[:1].isdigit() or follows.startswith(_SEPARATE)):
                    continue
                if follows == _OF_FONT_PROGRAM:
                    continue
                entry = text.around(start)
                if entry is None or start not in text.names:
                    raise Unreadable
                yield name, *entry

    def _list(self, text: ObjectText) -> None:
        for number, offset in text.places:
            self._places.setdefault(number, []).append((text, offset))

    def _open_object_streams(self, file: ObjectText) -> None:
        opened = set()
        for name, start, _ in _PACKED.within(file.data):
            entry = file.around(start)
            about = entry[1] if entry else None
            if about is None or about.stream is None or start not in file.names:
                if name == b"ObjStm":
                    raise Unreadable
                continue
            if about.stream not in opened:
                opened.add(about.stream)
                self._texts.append(self._object_stream(about))
        for text in self._texts[1:]:
            self._list(text)

    def _object_stream(self, about: Definition) -> ObjectText:
        text = self.decoded(about)
        firsts = (
            self.streams.integers(about.value.all(b"First"))
            if isinstance(about.value, Dictionary)
            else set()
        )
        if text is None or len(firsts) != 1:
            raise Unreadable
        (first,) = firsts
        try:
            numbers = [int(number) for number in text[:first].split()]
        except ValueError:
            raise Unreadable from None
        places = [
            (number, first + at) for number, at in zip(numbers[::2], numbers[1::2], strict=False)
        ]
        return ObjectText(text, [place for place in places if 0 <= place[1] < len(text)])
