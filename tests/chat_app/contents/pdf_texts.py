"""PDF files whose text is not in the strings that their pages draw, and how many pages it fills."""

from __future__ import annotations

import zlib

from tests.chat_app.contents.pdf_files import (
    BOX,
    CATALOG,
    FLATE,
    FONT,
    LINES,
    MAPPED_FONT,
    WORDS,
    pdf,
    stream,
)

_DRAWN = b"BT /F 1 Tf 10 780 Td (x) Tj ET "
_LINES = stream(zlib.compress(LINES), FLATE)


def page(
    contents: bytes = _DRAWN,
    more: dict[int, bytes] | None = None,
    *,
    resources: bytes = b"",
    entries: bytes = b"",
    font: bytes = FONT,
    pages: int = 1,
) -> bytes:
    """Return a file whose pages all have these contents and entries."""
    leaf = b"<< /Type /Page /Parent 2 0 R /Contents 20 0 R %s" % entries
    leaf += b"/Resources << /Font << /F 5 0 R >> %s >> >>" % resources
    kids = b" ".join([b"3 0 R"] * pages)
    objects = {
        1: CATALOG,
        2: b"<< /Type /Pages /Kids [%s] /Count %d%s>>" % (kids, pages, BOX),
        3: leaf,
        5: font,
        20: stream(contents),
    }
    return pdf(objects | (more or {}))


def _marked(properties: bytes, *, mark: bytes = b"/Span /M BDC ", text: bytes = b"") -> bytes:
    """Return a page whose content is marked ten times."""
    contents = (mark + _DRAWN + b"EMC ") * 10
    return page(contents, {6: properties, 7: text}, resources=b"/Properties << /M 6 0 R >>")


def _element(mark: bytes, element: bytes) -> bytes:
    objects = {
        6: b"<< /Type /StructTreeRoot /K 7 0 R /ParentTree 8 0 R >>",
        7: b"<< /Type /StructElem /S /P /P 6 0 R /K 0 %s >>" % element,
        8: b"<< /Nums [0 [7 0 R]] >>",
        9: b"<< /MCID 0 >>",
    }
    contents = (mark + _DRAWN + b"EMC ") * 10
    return page(
        contents,
        objects,
        entries=b"/StructParents 0 ",
        resources=b"/Properties << /M 9 0 R >>",
    )


def _annotation(about: bytes, more: dict[int, bytes] | None = None, *, pages: int = 1) -> bytes:
    annotation = b"<< /Type /Annot /Rect [0 0 9 9] /F 4 %s >>" % about
    return page(_DRAWN, {6: annotation} | (more or {}), entries=b"/Annots [6 0 R] ", pages=pages)


def _named(name: bytes, *, about: bytes = b"", more: dict[int, bytes] | None = None) -> bytes:
    font = FONT.replace(b">>", b"/Encoding << /Differences [65 /%s] >> %s>>" % (name, about))
    return page(b"BT /F 1 Tf (" + b"A" * 6_000 + b") Tj ET", more, font=font)


def _mapped(cmap: bytes, code: bytes = b"A") -> bytes:
    contents = b"BT /F 1 Tf (" + code * 6_000 + b") Tj ET"
    return page(contents, {6: stream(cmap)}, font=MAPPED_FONT)


def _inked(contents: bytes, resources: bytes, more: dict[int, bytes] | None = None) -> bytes:
    return page(contents, {6: _LINES} | (more or {}), resources=resources)


def _in_two(first: bytes, second: bytes) -> bytes:
    """Return a page whose contents are in two streams."""
    objects = {20: b"[21 0 R 22 0 R]", 21: stream(first), 22: stream(second)}
    return page(b"", objects)


_TEXT = b"/ActualText (%s)" % WORDS
_HEX = b"/ActualText <%s>" % WORDS.hex().encode()
_FILLS = b"0 0 9 9 re f " * 4
_GRAPHICS = b"/ExtGState << /G << /SMask << /S /Luminosity /G 6 0 R >> >> >>"

ELSEWHERE: dict[str, tuple[bytes, int]] = {
    # Ten times by its mark, and once by itself: 53,000 bytes are nine pages.
    "the text of a property list": (_marked(b"<< %s >>" % _TEXT), 97),
    "a text in hexadecimal": (_marked(b"<< %s >>" % _HEX), 97),
    "a text elsewhere": (_marked(b"<< /ActualText 7 0 R >>", text=b"(%s)" % WORDS), 97),
    "a text with an escaped key": (_marked(b"<< %s >>" % _TEXT.replace(b"Text", b"#54ext")), 97),
    "a description": (_marked(b"<< %s >>" % _TEXT.replace(b"ActualText", b"Alt")), 97),
    "the long form of an abbreviation": (
        _marked(b"<< %s >>" % _TEXT.replace(b"ActualText", b"E")), 88,
    ),
    "a mark with an escaped name": (_marked(b"<< %s >>" % _TEXT, mark=b"/Span /#4d BDC "), 97),
    "a mark after a comment": (_marked(b"<< %s >>" % _TEXT, mark=b"/Span /M %)\nBDC "), 97),
    "a mark far from its name": (
        _marked(b"<< %s >>" % _TEXT, mark=b"/Span /M" + b" " * 90 + b"BDC "), 97,
    ),
    "marks in place": (_marked(b"<< %s >>" % _TEXT, mark=b"/P << /MCID 0 >> BDC "), 9),
    "the text of an element": (_element(b"/P << /MCID 0 >> BDC ", _TEXT), 97),
    "the text of an element by a property list": (_element(b"/P /M BDC ", _TEXT), 97),
    "the text of an element by an odd number": (_element(b"/P << /MCID 0.0 >> BDC ", _TEXT), 97),
    "the text of an element without a mark": (_element(b"/P << /MCID 1 >> BDC ", _TEXT), 9),
    "an appearance": (_annotation(b"/Subtype /Stamp /AP << /N 7 0 R >>", {7: _LINES}), 9),
    "an appearance on ten pages": (
        _annotation(b"/Subtype /Stamp /AP << /N 7 0 R >>", {7: _LINES}, pages=10), 89,
    ),
    "an appearance in several states": (
        _annotation(
            b"/Subtype /Widget /AP << /N << /On 7 0 R /Off 8 0 R >> /D 8 0 R >>",
            {7: _LINES, 8: stream(b"")},
        ),
        9,
    ),
    "an appearance elsewhere": (
        _annotation(
            b"/Subtype /Widget /AP 8 0 R", {7: _LINES, 8: b"<< /N 9 0 R >>", 9: b"<< /On 7 0 R >>"}
        ),
        9,
    ),
    "a text without an appearance": (_annotation(b"/Subtype /FreeText /Contents (%s)" % WORDS), 9),
    "a formatted text in a stream": (
        _annotation(b"/Subtype /FreeText /RC 7 0 R", {7: stream(zlib.compress(WORDS), FLATE)}), 9,
    ),
    "the value of a field": (_annotation(b"/Subtype /Widget /FT /Tx /V (%s)" % WORDS), 9),
    "the value of a parent": (
        _annotation(b"/Subtype /Widget /Parent 7 0 R", {7: b"<< /FT /Tx /V (%s) >>" % WORDS}), 9,
    ),
    "the caption of a button": (
        _annotation(b"/Subtype /Widget /FT /Btn /MK << /CA (%s) >>" % WORDS), 9,
    ),
    "an open list": (_annotation(b"/Subtype /Widget /FT /Ch /Opt [(%s) (b)]" % WORDS), 9),
    "a closed list": (
        _annotation(b"/Subtype /Widget /FT /Ch /Ff 131072 /Opt [(%s) (b)]" % WORDS), 1,
    ),
    "a signature": (
        _annotation(
            b"/Subtype /Widget /FT /Sig /V 7 0 R", {7: b"<< /Contents <%s> >>" % (b"00" * 90_000)}
        ),
        1,
    ),
    "a glyph with a long name": (_named(b"_".join([b"a"] * 30)), 60),
    "a glyph with an unknown name": (_named(b"abcdefgh.alt"), 13),
    "a glyph with a name in hexadecimal": (_named(b"uni00610062"), 12),
    "a ligature": (_named(b"ffi"), 3),
    "a glyph that stands for a phrase": (_named(b"uniFDFA"), 18),
    "a glyph with a usual name": (_named(b"quotedblright"), 1),
    "a name that a map replaces": (
        _named(
            b"glyph65",
            about=b"/ToUnicode 6 0 R",
            more={6: stream(b"1 beginbfchar <41> <0061> endbfchar")},
        ),
        1,
    ),
    "a name that a map leaves": (
        _named(
            b"glyph65",
            about=b"/ToUnicode 6 0 R",
            more={6: stream(b"1 beginbfchar <42> <0061> endbfchar")},
        ),
        8,
    ),
    "a name that another font has without a map": (
        page(
            b"BT /F 1 Tf (" + b"A" * 6_000 + b") Tj ET",
            {
                5: FONT.replace(b">>", b"/Encoding 7 0 R /ToUnicode 6 0 R >>"),
                6: stream(b"1 beginbfchar <41> <0061> endbfchar"),
                7: b"<< /Differences [65 /glyph65] >>",
                8: FONT.replace(b">>", b"/Encoding 7 0 R >>"),
            },
        ),
        8,
    ),
    "a code for a phrase": (_mapped(b"1 beginbfchar <41> <FDFA> endbfchar"), 18),
    "a range with a phrase": (_mapped(b"1 beginbfrange <00> <FF> <FDB9> endbfrange"), 18),
    "a wide range with a phrase": (_mapped(b"1 beginbfrange <0000> <FFFF> <0000> endbfrange"), 18),
    # Each fill may draw a mask, and the pattern of an inside and an outline.
    "a soft mask": (_inked(b"/G gs " + _FILLS, _GRAPHICS), 106),
    "a pattern": (_inked(b"/Pattern cs /P scn " + _FILLS, b"/Pattern << /P 6 0 R >>"), 106),
    "a pattern in a pattern": (
        _inked(
            b"/Pattern cs /P scn " + _FILLS,
            b"/Pattern << /P 7 0 R /Q 6 0 R >>",
            {7: stream(b"/Q scn f", b"/PatternType 1")},
        ),
        318,
    ),
    "a string in two streams": (_in_two(b"BT /F 1 Tf (a", WORDS + b") Tj ET"), 9),
    "a string in two streams, in hexadecimal": (
        _in_two(b"BT /F 1 Tf <61", WORDS.hex().encode() + b"> Tj ET"), 18,
    ),
    "a mask that no page names": (_inked(_FILLS, _GRAPHICS), 1),
}  # fmt: skip

ODD: dict[str, bytes] = {
    "a field that is its own parent": _annotation(b"/Subtype /Widget /Parent 6 0 R"),
    "an appearance that shows itself": page(
        _DRAWN,
        {
            6: b"<< /Type /Annot /AP << /N 7 0 R >> >>",
            7: stream(b"/A Do", b"/Resources << /XObject << /A 7 0 R >> >>"),
        },
        entries=b"/Annots [6 0 R] ",
    ),
    "an appearance in itself": _annotation(b"/AP 7 0 R", {7: b"<< /N 7 0 R >>"}),
    "a text in itself": _marked(b"<< /ActualText 7 0 R >>", text=b"[7 0 R]"),
    "a number of two meanings": pdf(
        {
            1: CATALOG,
            2: b"<< /Type /Pages /Kids [3 0 R] /Count 1%s>>" % BOX,
            3: b"<< /Type /Page /Parent 2 0 R >>",
            5: FONT.replace(b">>", b"/Encoding << /Differences [7 0 R /glyph65] >> >>"),
            7: b"65",
        },
        before=b"7 0 obj 66 endobj\n",
    ),
    "an appearance that is compressed in an odd way": _annotation(
        b"/AP << /N 7 0 R >>", {7: stream(LINES, b"/Filter /LZWDecode")}
    ),
}
