"""Texts that stand in for marked content (ISO 32000-2, 14.6 and 14.9).

A reader may give such a text as often as the content has its mark: by the name of a property list,
or by the number of an element in the structure tree.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from chat_app.contents.pdf.objects import Dictionary, Keys, Unreadable, all_under

if TYPE_CHECKING:
    from chat_app.contents.pdf.document import PdfDocument
    from chat_app.contents.pdf.objects import Value

_TEXTS: Final = (b"ActualText", b"Alt", b"E")
_ELSEWHERE: Final = Keys(b"ActualText", b"Alt")
_PROPERTIES: Final = Keys(b"Properties")
_TREE: Final = Keys(b"Nums")
_MARK: Final = Keys(b"MCID")
_NUMBER: Final = re.compile(rb"[\0\t\n\f\r ]{1,64}\+?(\d{1,9})(?![.\d])")
_NAMED_ELEMENTS: Final = 100_000


class MarkedTexts:
    """The texts that stand in for the content of a document."""

    def __init__(self, document: PdfDocument) -> None:
        self._document = document
        self._of_element = self._elements()
        self._longest = max(self._of_element.values(), default=0)
        self.by_name = self._properties()
        """The size of the text of each property list that has one, by its name on any page."""
        self.all_once = document.texts_of(_ELSEWHERE)
        """The size of all texts, each once."""

    def of_numbers(self, data: bytes) -> int:
        """Return the size of the texts that the numbers in a content stream refer to."""
        if not self._longest:
            return 0
        size = 0
        for _, _, end in _MARK.within(data):
            number = _NUMBER.match(data, end)
            size += self._of_element.get(int(number[1]), 0) if number else self._longest
        return size

    def _properties(self) -> dict[bytes, int]:
        sizes: dict[bytes, int] = {}
        for resources in self._values(_PROPERTIES, b"Properties"):
            for name, value in resources.entries if isinstance(resources, Dictionary) else ():
                for entry in self._document.resolve(value):
                    if isinstance(entry, Dictionary) and (size := self._size(entry)):
                        sizes[name] = max(size, sizes.get(name, 0))
        return sizes

    def _size(self, about: Dictionary) -> int:
        numbers = [
            number for value in about.all(b"MCID") for number in self._document.resolve(value)
        ]
        of_elements = (
            self._of_element.get(number, 0) if isinstance(number, int) else self._longest
            for number in numbers
        )
        return self._own_size(about) + sum(of_elements)

    def _own_size(self, about: Dictionary) -> int:
        return sum(map(self._document.size_of_text, about.all(*_TEXTS)))

    def _elements(self) -> dict[int, int]:
        """Return the size of the text of the elements that a number may refer to on any page."""
        sizes: dict[int, int] = {}
        remaining = _NAMED_ELEMENTS
        for numbers in self._values(_TREE, b"Nums"):
            for item in numbers if isinstance(numbers, list) else ():
                for elements in self._document.resolve(item):
                    for number, element in enumerate(
                        elements if isinstance(elements, list) else ()
                    ):
                        remaining -= 1
                        if remaining < 0:
                            raise Unreadable
                        for entry in self._document.resolve(element):
                            if isinstance(entry, Dictionary) and (size := self._own_size(entry)):
                                sizes[number] = max(size, sizes.get(number, 0))
        return sizes

    def _values(self, keys: Keys, key: bytes) -> list[Value]:
        """Return the values of a key in all objects."""
        values: list[Value] = []
        seen: set[int] = set()
        for _, _, about in self._document.objects_with(keys):
            if id(about) in seen:
                continue
            seen.add(id(about))
            for value in all_under(about.value, key):
                values += self._document.resolve(value)
        return values
