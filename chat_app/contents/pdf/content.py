"""The text that a page shows: the strings in its content streams, and in the forms they show.

A font may map one character code to many characters (ISO 32000-2, 9.10.3).
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from chat_app.contents.pdf.objects import Dictionary, Keys, Reference, Unreadable, name_of

if TYPE_CHECKING:
    from chat_app.contents.pdf.document import PdfDocument
    from chat_app.contents.pdf.objects import Definition, Value

MOST_TEXT: Final = 10**9
"""No text counts as longer."""
STRINGS: Final = 2_000_000
"""How many strings and comments of a file are measured."""
_DEPTH: Final = 30

_REGULAR: Final = rb"[^\0\t\n\f\r ()<>\[\]{}/%]"
_BLANK: Final = rb"(?:[\0\t\n\f\r ]|%[^\r\n]{0,64}[\r\n])"
_TOKENS: Final = re.compile(
    rb"\(((?:[^()\\]|\\.|\((?:[^()\\]|\\.)*+\))*+)\)|(?<!<)<(?!<)([^<>]*+)>|(\()|%[^\r\n]*+",
    re.DOTALL,
)
_SHOWN_FORM: Final = re.compile(
    rb"/(" + _REGULAR + rb"++)" + _BLANK + rb"{1,64}Do(?!" + _REGULAR + rb")"
)
_SHOW: Final = re.compile(rb"(?<!" + _REGULAR + rb")Do(?!" + _REGULAR + rb")")
_ESCAPE: Final = re.compile(rb"\\([0-7]{1,3})")
_NOT_HEX: Final = re.compile(rb"[^0-9A-Fa-f]+")
_SECTION: Final = re.compile(rb"beginbf(char|range)(.*?)(?:endbf|\Z)", re.DOTALL)
_MAPPED: Final = re.compile(rb"<([^<>]*+)>|[\[\]]")
_FORMS: Final = Keys(b"XObject")
_MAPS: Final = Keys(b"ToUnicode")


class Texts:
    """Measures the text of content streams in bytes, as if each character were one."""

    def __init__(self, document: PdfDocument) -> None:
        self._document = document
        self._of_object: dict[int, int] = {}
        self._open: set[int] = set()
        self._left = STRINGS
        self._forms = self._named_forms()
        self._longer = self._mapped_to_many()

    def of_contents(self, value: Value, depth: int = 0) -> int:
        """Return how much text the contents of a page show: a stream or an array of them."""
        if depth > _DEPTH:
            raise Unreadable
        if isinstance(value, list):
            return min(sum(self.of_contents(one, depth + 1) for one in value), MOST_TEXT)
        return self._of_number(value.number, depth + 1) if isinstance(value, Reference) else 0

    def _of_number(self, number: int, depth: int) -> int:
        if number in self._of_object:
            return self._of_object[number]
        if number in self._open:
            raise Unreadable
        self._open.add(number)
        total = 0
        for about in self._document.definitions(number):
            shown = self._document.decoded(about)
            if shown is None:
                size = self.of_contents(about.value, depth)
            else:
                size = self._of_stream(shown, depth)
            total = max(total, size)
        self._open.discard(number)
        self._of_object[number] = min(total, MOST_TEXT)
        return self._of_object[number]

    def _of_stream(self, shown: bytes, depth: int) -> int:
        total = self._of_strings(shown)
        if not self._forms:
            return total
        named = Counter(name_of(found[1]) for found in _SHOWN_FORM.finditer(shown))
        total += sum(count * self._of_form(name, depth) for name, count in named.items())
        if others := len(_SHOW.findall(shown)) - named.total():
            total += others * max(self._of_form(name, depth) for name in self._forms)
        return total

    def _of_strings(self, shown: bytes) -> int:
        strings: list[bytes] = []
        for token in _TOKENS.finditer(shown):
            self._left -= 1
            if self._left < 0:
                raise Unreadable
            if token[3]:
                # Deeply nested or unfinished: all that follows may be text.
                strings.append(shown[token.start() :])
                break
            strings.append(token[1] or _hex_bytes(token[2] or b""))
        total = sum(map(len, strings))
        if self._longer:
            codes = Counter(_unescaped(b"".join(strings)))
            total += sum(codes[code] * (units - 1) for code, units in self._longer.items())
        return total

    def _of_form(self, name: bytes, depth: int) -> int:
        if depth > _DEPTH:
            raise Unreadable
        return max(
            (self._of_number(number, depth + 1) for number in self._forms.get(name, ())), default=0
        )

    def _named_forms(self) -> dict[bytes, set[int]]:
        """Return the numbers of the forms that a name may refer to on any page."""
        forms: dict[bytes, set[int]] = {}
        for _, _, about in self._document.objects_with(_FORMS):
            for resources in all_under(about.value, b"XObject"):
                for found in self._document.resolve(resources):
                    for name, form in found.entries if isinstance(found, Dictionary) else ():
                        if isinstance(form, Reference) and not self._is_picture(form.number):
                            forms.setdefault(name, set()).add(form.number)
        return forms

    def _is_picture(self, number: int) -> bool:
        return all(
            isinstance(about.value, Dictionary) and set(about.value.all(b"Subtype")) == {b"Image"}
            for about in self._document.definitions(number)
        )

    def _mapped_to_many(self) -> dict[int, int]:
        """Return how many characters a code stands for, by its last byte, where it is several."""
        longer: dict[int, int] = {}
        seen: set[int] = set()
        for _, _, about in self._document.objects_with(_MAPS):
            for value in all_under(about.value, b"ToUnicode"):
                if not isinstance(value, Reference) or value.number in seen:
                    continue
                seen.add(value.number)
                for definition in self._document.definitions(value.number):
                    _read_map(self._map_of(definition), longer)
        return longer

    def _map_of(self, definition: Definition) -> bytes:
        return self._document.decoded(definition) or b""


def all_under(value: Value, key: bytes) -> list[Value]:
    """Return the values of a key in a value and all that is in it."""
    if isinstance(value, list):
        return [found for one in value for found in all_under(one, key)]
    if not isinstance(value, Dictionary):
        return []
    found = value.all(key)
    return found + [inner for _, one in value.entries for inner in all_under(one, key)]


def _read_map(text: bytes, longer: dict[int, int]) -> None:
    for section in _SECTION.finditer(text):
        of_range = section[1] == b"range"
        sources: list[bytes] = []
        in_array = False
        for token in _MAPPED.finditer(section[2]):
            if token[1] is None:
                in_array = token[0] == b"["
                if not in_array:
                    sources = []
                continue
            code = _hex_bytes(token[1])
            if len(sources) < 1 + of_range:
                sources.append(code)
                continue
            if (units := -(-len(code) // 2)) > 1:
                for source in _last_bytes(sources):
                    longer[source] = max(longer.get(source, 1), units)
            if not in_array:
                sources = []


def _last_bytes(sources: list[bytes]) -> range:
    first, last = int.from_bytes(sources[0]), int.from_bytes(sources[-1])
    if first >> 8 != last >> 8 or last < first:
        return range(256)
    return range(first & 0xFF, (last & 0xFF) + 1)


def _hex_bytes(digits: bytes) -> bytes:
    digits = _NOT_HEX.sub(b"", digits)
    return bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode())


def _unescaped(text: bytes) -> bytes:
    if b"\\" not in text:
        return text
    return _ESCAPE.sub(lambda found: bytes([int(found[1], 8) & 255]), text)
