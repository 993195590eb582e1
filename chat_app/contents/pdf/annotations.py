"""The text of a page's annotations and form fields (ISO 32000-2, 12.5 and 12.7).

Readers show their appearance streams, and make what is missing from the texts of the field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from chat_app.contents.pdf.objects import Dictionary, Reference, Unreadable

if TYPE_CHECKING:
    from chat_app.contents.pdf.content import Texts
    from chat_app.contents.pdf.document import PdfDocument
    from chat_app.contents.pdf.objects import Value

_SHOWN: Final = (b"Contents", b"RC", b"V", b"CA", b"OverlayText")
_COMBO: Final = 1 << 17
_DEPTH: Final = 10


class Annotations:
    """Measures the text of annotations."""

    def __init__(self, document: PdfDocument, texts: Texts) -> None:
        self._document = document
        self._texts = texts
        self._of_object: dict[int, int] = {}

    def size(self, value: Value) -> int:
        """Return the amount of text that a page's annotation array shows."""
        return sum(
            self._of_annotation(annotation)
            for annotations in self._document.resolve(value)
            for annotation in (annotations if isinstance(annotations, list) else ())
        )

    def _of_annotation(self, value: Value) -> int:
        if not isinstance(value, Reference):
            return self._measured(value)
        if value.number not in self._of_object:
            sizes = map(self._measured, self._document.resolve(value))
            self._of_object[value.number] = max(sizes, default=0)
        return self._of_object[value.number]

    def _measured(self, about: Value) -> int:
        if not isinstance(about, Dictionary):
            return 0
        drawn = max((self._appearance(appearance, 0) for appearance in about.all(b"AP")), default=0)
        return drawn + self._of_field(about, 0)

    def _appearance(self, value: Value, depth: int) -> int:
        """Return the size of the longest appearance: a reader shows only one of them."""
        if depth > _DEPTH:
            raise Unreadable
        if isinstance(value, Dictionary):
            return max(
                (self._appearance(entry, depth + 1) for _, entry in value.entries), default=0
            )
        if not isinstance(value, Reference):
            return 0
        sizes = [
            self._appearance(about.value, depth + 1)
            for about in self._document.definitions_of(value)
            if about.stream is None
        ]
        return max([*sizes, self._texts.of_contents(value)])

    def _of_field(self, about: Dictionary, depth: int) -> int:
        """Return the size of the texts of a field, which inherits those of its parents."""
        if depth > _DEPTH:
            raise Unreadable
        size = sum(map(self._document.size_of_text, about.all(*_SHOWN)))
        for value in about.all(b"MK"):
            for field in self._document.resolve(value):
                if isinstance(field, Dictionary):
                    size += sum(map(self._document.size_of_text, field.all(*_SHOWN)))
        if not self._is_combo(about):
            size += sum(map(self._document.size_of_text, about.all(b"Opt")))
        for parent in about.all(b"Parent"):
            size += max(
                (
                    self._of_field(parent_field, depth + 1)
                    for parent_field in self._document.resolve(parent)
                    if isinstance(parent_field, Dictionary)
                ),
                default=0,
            )
        return size

    def _is_combo(self, about: Dictionary) -> bool:
        """Return whether a choice is certainly drawn closed."""
        flags = self._document.streams.integers(about.all(b"Ff"))
        return bool(flags) and all(flag & _COMBO for flag in flags)
