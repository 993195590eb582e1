"""The most pages that a PDF may have, as a model that reads it counts them.

A page tree may name one page many times, and the count it states is not trusted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from chat_app.contents.pdf.annotations import Annotations
from chat_app.contents.pdf.content import MAX_TEXT, Texts
from chat_app.contents.pdf.document import PdfDocument
from chat_app.contents.pdf.objects import (
    Dictionary,
    Keys,
    Reference,
    Unreadable,
    all_under,
)

if TYPE_CHECKING:
    from chat_app.contents.pdf.objects import Value

MAX_PAGES: Final = 1_000
"""No vendor takes a file with more."""
TEXT_OF_PAGE: Final = 6_000
"""Bytes of shown text that count as a page: two bytes may be a character, and so a token."""
_DEPTH: Final = 60
_TREE: Final = Keys(b"Pages", b"Kids", b"Contents", b"Linearized")
_ENCRYPTED: Final = Keys(b"Encrypt")


def max_pages(data: bytes) -> int:
    """Return the most pages a PDF may have; a page with much text counts as several."""
    try:
        if any(_ENCRYPTED.within(data)):
            return MAX_PAGES
        return _Tree(PdfDocument(data)).max_pages()
    except Unreadable:
        return MAX_PAGES


class _Tree:
    """The page tree. Nodes are measured in pages and bytes of text."""

    def __init__(self, document: PdfDocument) -> None:
        self._document = document
        self._texts = Texts(document)
        self._annotations = Annotations(document, self._texts)
        self._of_object: dict[int, tuple[int, int]] = {}
        self._open: set[int] = set()

    def max_pages(self) -> int:
        """Return the pages of the tree, or of what may be one."""
        roots: list[Value] = []
        nodes: list[Value] = []
        lone: dict[int, Value] = {}
        claimed = 0
        for name, number, about in self._document.objects_with(_TREE):
            value = about.value
            if not isinstance(value, Dictionary):
                raise Unreadable
            match bytes(name):
                case b"Pages":
                    roots += all_under(value, name)
                case b"Kids":
                    nodes.append(Reference(number))
                case b"Contents":
                    lone[number] = value
                case _:
                    claimed = max(claimed, *self._document.streams.integers(value.all(b"N")), 0)
        sizes = [self._node(node, 0) for node in roots or nodes]
        pages = max([pages for pages, _ in sizes] + [claimed, self._typed_pages(lone)])
        text = max((text for _, text in sizes), default=0) + self._texts.marked_once
        if not sizes or not pages:
            return MAX_PAGES
        return min(max(pages, -(-text // TEXT_OF_PAGE)), MAX_PAGES)

    def _typed_pages(self, objects: dict[int, Value]) -> int:
        """Count the objects that are pages by themselves, for readers that repair the tree."""
        return sum(
            isinstance(entry, Dictionary) and b"Page" in entry.all(b"Type")
            for entry in objects.values()
        )

    def _node(self, value: Value, depth: int) -> tuple[int, int]:
        if depth > _DEPTH:
            raise Unreadable
        if isinstance(value, Reference):
            return self._numbered(value.number, depth)
        if not isinstance(value, Dictionary):
            return 1, 0
        pages, text = 1, 0
        for kids in value.all(b"Kids"):
            for nodes in self._document.resolve(kids):
                sizes = [
                    self._node(child, depth + 1)
                    for child in (nodes if isinstance(nodes, list) else ())
                ]
                pages = max(pages, sum(pages for pages, _ in sizes))
                text = max(text, sum(text for _, text in sizes))
        if value.all(b"Kids"):
            pages = max(pages, *self._document.streams.integers(value.all(b"Count")), 0)
        content_size = max(
            (self._texts.of_contents(contents) for contents in value.all(b"Contents")), default=0
        )
        noted = max((self._annotations.size(notes) for notes in value.all(b"Annots")), default=0)
        text = max(text, content_size + noted)
        return min(pages, MAX_PAGES), min(text, MAX_TEXT)

    def _numbered(self, number: int, depth: int) -> tuple[int, int]:
        if number in self._of_object:
            return self._of_object[number]
        if number in self._open:
            raise Unreadable
        self._open.add(number)
        sizes = [self._node(about.value, depth + 1) for about in self._document.definitions(number)]
        self._open.discard(number)
        pages = max((pages for pages, _ in sizes), default=1)
        self._of_object[number] = pages, max((text for _, text in sizes), default=0)
        return self._of_object[number]
