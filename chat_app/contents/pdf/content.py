"""The text that a page shows: the strings in its content streams, and in what they draw.

That is forms, the texts that stand in for marked content, and soft masks and patterns, which a
reader may redraw for each object painted with them.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from chat_app.contents.pdf.letters import hex_bytes, longer_codes
from chat_app.contents.pdf.marked import MarkedTexts
from chat_app.contents.pdf.objects import (
    Dictionary,
    Keys,
    Reference,
    Unreadable,
    all_under,
    name_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chat_app.contents.pdf.document import PdfDocument
    from chat_app.contents.pdf.objects import Value

MAX_TEXT: Final = 10**9
"""No text counts as longer."""
STRINGS: Final = 2_000_000
"""How many strings and comments of a file are measured."""
_DEPTH: Final = 30

_REGULAR: Final = rb"[^\0\t\n\f\r ()<>\[\]{}/%]"
_BLANK: Final = rb"(?:[\0\t\n\f\r ]|%[^\r\n]{0,64}[\r\n])"
_TOKENS: Final = re.compile(
    rb"\(((?:[^()\\]|\\.|\((?:[^()\\]|\\.)*+\))*+)\)|(?<!<)<(?!<)([^<>]*+)>|(\()"
    rb"|((?<!<)<(?!<)[^<>]*+\Z)|%[^\r\n]*+",
    re.DOTALL,
)
_OF_NAME: Final = rb"/(" + _REGULAR + rb"++)" + _BLANK + rb"{1,64}"
_SHOWN_FORM: Final = re.compile(_OF_NAME + rb"Do(?!" + _REGULAR + rb")")
_SHOW: Final = re.compile(rb"(?<!" + _REGULAR + rb")Do(?!" + _REGULAR + rb")")
_MARKED: Final = re.compile(_OF_NAME + rb"(?:BDC|DP)(?!" + _REGULAR + rb")")
_MARK: Final = re.compile(rb"(?<!" + _REGULAR + rb")(?:BDC|DP)(?!" + _REGULAR + rb")")
_MARKED_IN_PLACE: Final = re.compile(rb">>" + _BLANK + rb"{0,64}(?:BDC|DP)(?!" + _REGULAR + rb")")
_NAME: Final = re.compile(rb"/(" + _REGULAR + rb"++)")
_PAINT: Final = re.compile(
    rb"(?<!" + _REGULAR + rb")(?:f\*?|F|[BbSs]\*?|sh|T[jJ]|['\"]|Do|EI)(?!" + _REGULAR + rb")"
)
_ESCAPE: Final = re.compile(rb"\\([0-7]{1,3})")
_FORMS: Final = Keys(b"XObject")
_MASKS: Final = Keys(b"ExtGState")
_PATTERNS: Final = Keys(b"Pattern")
_INKS_IN_INKS: Final = 3


class _Drawing(NamedTuple):
    """The effect of a stream: its text, the number of paintings, and the inks that it names.

    An unterminated string continues in the next stream of a page, of which `size` bytes are text.
    """

    text: int = 0
    paints: int = 0
    inks: frozenset[bytes] = frozenset()
    size: int = 0
    is_open: bool = False

    def and_also(self, other: _Drawing, times: int = 1) -> _Drawing:
        """Return this followed by another, drawn `times` times."""
        return self._replace(
            text=min(self.text + other.text * times, MAX_TEXT),
            paints=min(self.paints + other.paints * times, MAX_TEXT),
            inks=self.inks | other.inks,
        )

    def then(self, after: _Drawing) -> _Drawing:
        """Return this with the next stream of the page."""
        total = self.and_also(after)
        return total._replace(
            text=min(total.text + (after.size if self.is_open else 0), MAX_TEXT),
            size=self.size + after.size,
            is_open=self.is_open or after.is_open,
        )

    def or_else(self, other: _Drawing) -> _Drawing:
        """Return this or another, whichever shows more."""
        return _Drawing(
            text=max(self.text, other.text),
            paints=max(self.paints, other.paints),
            inks=self.inks | other.inks,
            size=max(self.size, other.size),
            is_open=self.is_open or other.is_open,
        )


class Texts:
    """Measures the text of content streams in bytes, as if each character were one."""

    def __init__(self, document: PdfDocument) -> None:
        self._document = document
        self._of_object: dict[int, _Drawing] = {}
        self._of_ink: dict[tuple[int, int], int] = {}
        self._open: set[int] = set()
        self._strings_left = STRINGS
        self._forms = self._named_forms()
        self._inks = self._named_inks()
        self._marked = MarkedTexts(document)
        self._longer = longer_codes(document)

    @property
    def marked_once(self) -> int:
        """The size of all texts that stand in for content, each once."""
        return self._marked.all_once

    def of_contents(self, value: Value) -> int:
        """Return the amount of text that a page's contents show: a stream or an array of them."""
        return self._size(self._of_value(value, 0), _INKS_IN_INKS)

    def _size(self, part: _Drawing, depth: int) -> int:
        """Return the size of a text plus that of the inks, once for each painted object."""
        numbers = {number for name in part.inks for number in self._inks[name]} if depth else set()
        of_ink = max((self._size_of_ink(number, depth - 1) for number in numbers), default=0)
        # A mask, the inside and the outline.
        return min(part.text + part.paints * 3 * of_ink, MAX_TEXT)

    def _size_of_ink(self, number: int, depth: int) -> int:
        if (number, depth) not in self._of_ink:
            self._of_ink[number, depth] = self._size(self._of_number(number, 0), depth)
        return self._of_ink[number, depth]

    def _of_value(self, value: Value, depth: int) -> _Drawing:
        if depth > _DEPTH:
            raise Unreadable
        total = _Drawing()
        if isinstance(value, list):
            for item in value:
                total = total.then(self._of_value(item, depth + 1))
            return total
        return self._of_number(value.number, depth + 1) if isinstance(value, Reference) else total

    def _of_number(self, number: int, depth: int) -> _Drawing:
        if number in self._of_object:
            return self._of_object[number]
        if number in self._open:
            raise Unreadable
        self._open.add(number)
        total = _Drawing()
        for about in self._document.definitions(number):
            data = self._document.decoded(about)
            if data is None:
                total = total.or_else(self._of_value(about.value, depth))
            else:
                total = total.or_else(self._of_stream(data, depth))
        self._open.discard(number)
        self._of_object[number] = total
        return total

    def _of_stream(self, data: bytes, depth: int) -> _Drawing:
        text, is_open = self._of_strings(data)
        text += self._of_marks(data)
        names: frozenset[bytes] = frozenset()
        paints = 0
        if self._inks:
            names = frozenset(name_of(match[1]) for match in _NAME.finditer(data))
            paints = _count(_PAINT, data)
        total = _Drawing(text, paints, names & self._inks.keys(), len(data), is_open)
        if not self._forms:
            return total
        named = Counter(name_of(match[1]) for match in _SHOWN_FORM.finditer(data))
        for name, count in named.items():
            total = total.and_also(self._of_form(name, depth), count)
        if others := _count(_SHOW, data) - named.total():
            longest = _Drawing()
            for form in self._forms:
                longest = longest.or_else(self._of_form(form, depth))
            total = total.and_also(longest, others)
        return total

    def _of_marks(self, data: bytes) -> int:
        total = self._marked.of_numbers(data)
        if not (sizes := self._marked.by_name):
            return total
        named = Counter(name_of(match[1]) for match in _MARKED.finditer(data))
        total += sum(sizes.get(name, 0) * count for name, count in named.items())
        others = _count(_MARK, data) - named.total() - _count(_MARKED_IN_PLACE, data)
        return total + max(others, 0) * max(sizes.values())

    def _of_strings(self, data: bytes) -> tuple[int, bool]:
        """Return the size of the strings in a stream, and whether the last one is left open."""
        strings: list[bytes] = []
        is_open = False
        for token in _TOKENS.finditer(data):
            self._strings_left -= 1
            if self._strings_left < 0:
                raise Unreadable
            if token[3] or token[4]:
                # Deeply nested or unfinished: all that follows may be text.
                strings.append(data[token.start() :])
                is_open = True
                break
            strings.append(token[1] or hex_bytes(token[2] or b""))
        total = sum(map(len, strings))
        if self._longer:
            codes = Counter(_unescaped(b"".join(strings)))
            total += sum(codes[code] * (units - 1) for code, units in self._longer.items())
        return total, is_open

    def _of_form(self, name: bytes, depth: int) -> _Drawing:
        if depth > _DEPTH:
            raise Unreadable
        total = _Drawing()
        for number in self._forms.get(name, ()):
            total = total.or_else(self._of_number(number, depth + 1))
        return total

    def _named_forms(self) -> dict[bytes, set[int]]:
        """Return the numbers of the forms that a name may refer to on any page."""
        forms: dict[bytes, set[int]] = {}
        for _, _, about in self._document.objects_with(_FORMS):
            for resources in all_under(about.value, b"XObject"):
                for entry in self._document.resolve(resources):
                    for name, form in entry.entries if isinstance(entry, Dictionary) else ():
                        if isinstance(form, Reference) and not self._is_picture(form.number):
                            forms.setdefault(name, set()).add(form.number)
        return forms

    def _named_inks(self) -> dict[bytes, set[int]]:
        """Return the numbers of the patterns and soft masks that a name may refer to."""
        inks: dict[bytes, set[int]] = {}
        for keys, key in ((_MASKS, b"ExtGState"), (_PATTERNS, b"Pattern")):
            for _, _, about in self._document.objects_with(keys):
                for resources in all_under(about.value, key):
                    for entry in self._document.resolve(resources):
                        for name, ink in entry.entries if isinstance(entry, Dictionary) else ():
                            if numbers := set(self._numbers_of_ink(ink)):
                                inks.setdefault(name, set()).update(numbers)
        return inks

    def _numbers_of_ink(self, ink: Value) -> Iterator[int]:
        if isinstance(ink, Reference) and any(
            about.stream is not None for about in self._document.definitions_of(ink)
        ):
            yield ink.number
        for state in self._document.resolve(ink):
            for value in state.all(b"SMask") if isinstance(state, Dictionary) else ():
                for mask in self._document.resolve(value):
                    for group in mask.all(b"G") if isinstance(mask, Dictionary) else ():
                        if isinstance(group, Reference):
                            yield group.number

    def _is_picture(self, number: int) -> bool:
        return all(
            isinstance(about.value, Dictionary) and set(about.value.all(b"Subtype")) == {b"Image"}
            for about in self._document.definitions(number)
        )


def _count(pattern: re.Pattern[bytes], text: bytes) -> int:
    return sum(1 for _ in pattern.finditer(text))


def _unescaped(text: bytes) -> bytes:
    if b"\\" not in text:
        return text
    return _ESCAPE.sub(lambda match: bytes([int(match[1], 8) & 255]), text)
