"""Upper bounds of the pages of a PDF, from bytes that hide pages and text from a plain search."""

from __future__ import annotations

import zlib

import pytest

from chat_app.contents.measures import measure_here
from tests.chat_app.contents.pdf_files import FLATE, PAGES, TEXTS, packed, pdf, shown, stream, tree
from tests.chat_app.contents.pdf_texts import ELSEWHERE, ODD

MIB = 1024 * 1024


def pages(data: bytes) -> int:
    return measure_here(data, "application/pdf")


@pytest.mark.parametrize("name", PAGES)
def test_a_pdf_has_at_least_the_pages_that_readers_find(name: str) -> None:
    data, expected = PAGES[name]
    assert pages(data) == expected


@pytest.mark.parametrize("name", TEXTS)
def test_a_page_with_much_text_counts_as_several(name: str) -> None:
    data, expected = TEXTS[name]
    assert expected * 0.97 <= pages(data) <= expected * 1.03


@pytest.mark.parametrize("name", ELSEWHERE)
def test_text_that_is_not_drawn_as_a_string_counts(name: str) -> None:
    data, expected = ELSEWHERE[name]
    assert expected * 0.97 <= pages(data) <= expected * 1.03


@pytest.mark.parametrize("name", ODD)
def test_odd_text_counts_as_the_most_pages(name: str) -> None:
    assert pages(ODD[name]) == 1_000


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "data",
    [
        b"%PDF-1.7\n",
        b"%PDF-1.7\n/Kids",
        pdf({1: b"<< /Type /Catalog >>"}),
        pdf(tree(1) | {9: packed({}, b"/Type /ObjStm" + FLATE).replace(b"First", b"Frist")}),
        pdf(tree(1) | {9: packed({7: b"null"}, b"/Type /ObjStm" + FLATE)[:-30]}),
        pdf(tree(1), before=b"/Kids" + b" " * 5_000 + b"[3 0 R]\n"),
        pdf(tree(1), before=b"9 0 obj << /Kids [[[[" + b"[" * 500 + b"\n"),
        shown(stream(zlib.compress(bytes(40 * MIB)), FLATE)),
        shown(stream(zlib.compress(b"(aaaaaaaa) Tj " * 2_000_000), FLATE)),
        shown(stream(b"/A Do"), more={21: stream(b"/A Do", b"/Subtype /Form")}),
    ],
    ids=range(10),
)
def test_a_pdf_that_cannot_be_measured_has_the_most_pages(data: bytes) -> None:
    assert pages(data) == 1_000
