"""Builds PDF files: honest ones, and ones whose pages and text are hard to see."""

from __future__ import annotations

import base64
import zlib

CATALOG = b"<< /Type /Catalog /Pages 2 0 R >>"
LEAF = b"<< /Type /Page /Parent 2 0 R >>"
FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
MAPPED_FONT = FONT.replace(b">>", b"/ToUnicode 6 0 R >>")
BOX = b" /MediaBox [0 0 612 792] "


def pdf(objects: dict[int, bytes], *, before: bytes = b"", more: bytes = b"") -> bytes:
    """Return a file of objects with its cross-reference table; `before` precedes them."""
    out = bytearray(b"%PDF-1.7\n" + before)
    offsets = {}
    for number, body in objects.items():
        offsets[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    return _finished(out, offsets, more)


def _finished(out: bytearray, offsets: dict[int, int], more: bytes = b"") -> bytes:
    start, size = len(out), max(offsets) + 1
    out += b"xref\n0 %d\n" % size
    for number in range(size):
        out += (
            b"%010d 00000 n \n" % offsets[number] if number in offsets else b"0000000000 65535 f \n"
        )
    out += b"trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n" % (size, more, start)
    return bytes(out)


def at_offsets(body: bytes, offsets: dict[int, int]) -> bytes:
    """Return a file whose table points to these offsets of `body`, wherever they are."""
    return _finished(bytearray(b"%PDF-1.7\n" + body), {n: at + 9 for n, at in offsets.items()})


def tree(
    pages: int,
    *,
    kids: bytes = b"/Kids [LEAVES]",
    count: bytes = b"/Count PAGES",
    leaf: bytes = LEAF,
) -> dict[int, bytes]:
    """Return the objects of a flat page tree."""
    references = b" ".join(b"%d 0 R" % (3 + index) for index in range(pages))
    kids, count = kids.replace(b"LEAVES", references), count.replace(b"PAGES", b"%d" % pages)
    objects = {1: CATALOG, 2: b"<< /Type /Pages" + BOX + kids + b" " + count + b" >>"}
    return objects | {3 + index: leaf for index in range(pages)}


def stream(data: bytes, about: bytes = b"") -> bytes:
    """Return a stream object."""
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(data), about, data)


def shown(contents: bytes, *, more: dict[int, bytes] | None = None, pages: int = 1) -> bytes:
    """Return a file whose pages all show the object 20."""
    resources = b"/Resources << /Font << /F 5 0 R >> /XObject << /A 21 0 R /B 22 0 R >> >>"
    leaf = b"<< /Type /Page /Parent 2 0 R /Contents 20 0 R %s >>" % resources
    references = b" ".join([b"3 0 R"] * pages)
    objects = {
        1: CATALOG,
        2: b"<< /Type /Pages /Kids [%s] /Count %d%s>>" % (references, pages, BOX),
        3: leaf,
        5: FONT,
        20: contents,
    }
    return pdf(objects | (more or {}))


def packed(objects: dict[int, bytes], about: bytes, *, encode: bool = False) -> bytes:
    """Return an object stream; `about` names its filter, `encode` wraps it in another one."""
    head, body = b"", b""
    for number, value in objects.items():
        head += b"%d %d " % (number, len(body))
        body += value + b" "
    data = head + body
    if encode:
        data = base64.a85encode(zlib.compress(data)) + b"~>"
        about += b"/Filter [/ASCII85Decode /FlateDecode]"
    elif b"/Filter" in about:
        data = zlib.compress(data)
    return stream(data, about + b" /N %d /First %d" % (len(objects), len(head)))


def with_object_stream(objects: dict[int, bytes], container: bytes) -> bytes:
    """Return a file whose table is a stream: objects 1 and up are in the object stream 900."""
    out = bytearray(b"%PDF-1.7\n")
    offset = len(out)
    out += b"900 0 obj\n" + container + b"\nendobj\n"
    start = len(out)
    rows = b"\0" + bytes(6)
    for number in range(1, 901):
        if number in objects:
            rows += b"\2" + (900).to_bytes(4) + list(objects).index(number).to_bytes(2)
        else:
            rows += b"\1" + offset.to_bytes(4) + b"\0\0" if number == 900 else b"\0" + bytes(6)
    out += b"901 0 obj\n" + stream(rows, b"/Type /XRef /Size 901 /W [1 4 2] /Root 1 0 R")
    out += b"\nendobj\nstartxref\n%d\n%%%%EOF\n" % start
    return bytes(out)


WORDS = b" ".join(b"word%d" % number for number in range(6_000))
"""About 53,000 bytes of text: nine pages."""
LINES = (
    b"BT /F 1 Tf 10 780 Td "
    + b" ".join(b"(" + WORDS[at : at + 2_000] + b") Tj" for at in range(0, len(WORDS), 2_000))
    + b" ET"
)
ONE_STRING = b"BT /F 1 Tf 10 780 Td (" + WORDS + b") Tj ET"
FLATE = b"/Filter /FlateDecode"
FORM = (
    b"/Type /XObject /Subtype /Form /BBox [0 0 9 9]"
    b" /Resources << /Font << /F 5 0 R >> /XObject << /B 22 0 R >> >>"
)
TEN = b"/A Do " * 10
_TABLE = tree(50)


def hidden(around: bytes, *, keyword: bytes = b"obj") -> bytes:
    """Return a file whose table points at objects that are not in their usual place."""
    tree_of_50 = b"<< /Type /Pages /Count 50 /Kids [%s] >>" % (b"3 0 R " * 50)
    body = around % (
        b"1 0 obj %s " % CATALOG, b"2 0 %s %s " % (keyword, tree_of_50), b"3 0 obj %s " % LEAF,
    )  # fmt: skip
    return at_offsets(body, {number: body.find(b"%d 0 " % number) for number in (1, 2, 3)})


_FORMS = {21: stream(zlib.compress(LINES), FORM + FLATE)}
_LONG = 500
_MAP = (
    b"/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00> <ff>"
    b" endcodespacerange 1 beginbfchar <41> <" + b"0061" * _LONG + b"> endbfchar endcmap"
)

PAGES: dict[str, tuple[bytes, int]] = {
    "honest": (pdf(tree(50)), 50),
    "blanks after the key": (
        pdf(tree(50, kids=b"/Kids%s[LEAVES]" % (b" " * 300), count=b"/Count\n\n PAGES")),
        50,
    ),
    "a comment after the key": (
        pdf(tree(50, kids=b"/Kids % [\n[LEAVES]", count=b"/Count%\nPAGES")), 50,
    ),
    "escaped names": (
        pdf(
            tree(
                50, kids=b"/K#69ds [LEAVES]", count=b"/Co#75nt PAGES", leaf=b"<< /Type /P#61ge >>"
            ),
            before=b"%/Type /Page\n",
        ),
        50,
    ),
    "a key escaped whole": (pdf(tree(50, kids=b"/#4b#69#64#73[LEAVES]", count=b"")), 50),
    "pages without a type": (pdf(tree(50, leaf=b"<< /Parent 2 0 R /MediaBox [0 0 9 9] >>")), 50),
    "kids elsewhere": (
        pdf(
            {
                1: CATALOG,
                2: b"<< /Type /Pages /Kids 4 0 R /Count 5 0 R" + BOX + b">>",
                3: LEAF,
                4: b"[" + b"3 0 R " * 50 + b"]",
                5: b"50",
            }
        ),
        50,
    ),
    "pages in pages": (
        pdf(
            {1: CATALOG, 2: b"<< /Type /Pages /Count 9" + BOX + b"/Kids [" + b"3 0 R " * 5 + b"]>>"}
            | {3: b"<< /Type /Pages /Kids [" + b"4 0 R " * 10 + b"]>>", 4: LEAF}
        ),
        50,
    ),
    "kids in place": (
        pdf({1: CATALOG, 2: b"<< /Type /Pages /Count 50" + BOX + b"/Kids [" + LEAF * 50 + b"]>>"}),
        50,
    ),
    "two keys, the first one long": (pdf(tree(50, count=b"/Kids [3 0 R] /Count 50")), 50),
    "two keys, the last one long": (
        pdf(tree(50, kids=b"/Kids [3 0 R] /Kids [LEAVES]", count=b"/Count 50")),
        50,
    ),
    "two objects with one number": (
        pdf(tree(50), before=b"2 0 obj << /Type /Pages /Kids [3 0 R] /Count 1 >> endobj\n"),
        50,
    ),
    "a count and no kids to match": (pdf(tree(1, count=b"/Count 50")), 50),
    "a linearized count": (pdf(tree(1), before=b"99 0 obj << /Linearized 1 /N 50 >> endobj\n"), 50),
    "objects in a comment": (hidden(b"%% %s%s%s\n"), 50),
    "objects in a stream": (
        hidden(b"9 0 obj << /Length 1 >> stream\n%s%s%s\nendstream endobj "), 50,
    ),
    "an object without its keyword": (hidden(b"%s%s%s", keyword=b"xyz"), 1_000),
    "an object that begins in a string": (
        pdf(tree(50, kids=b"/A (7 0 obj << /B 1) /Kids [LEAVES]")), 1_000,
    ),
    "a circle": (
        pdf({1: CATALOG, 2: b"<< /Type /Pages /Kids [3 0 R 2 0 R] >>", 3: LEAF}), 1_000,
    ),
    "an object stream": (
        with_object_stream(_TABLE, packed(_TABLE, b"/Type /ObjStm" + FLATE)), 50,
    ),
    "an object stream with an escaped type": (
        with_object_stream(_TABLE, packed(_TABLE, b"/Ty#70e /Ob#6aStm" + FLATE)), 50,
    ),
    "an object stream that is not compressed": (
        with_object_stream(_TABLE, packed(_TABLE, b"/Type /ObjStm")), 1_000,
    ),
    "an object stream in two filters": (
        with_object_stream(
            _TABLE,
            packed(_TABLE, b"/Type /ObjStm", encode=True),
        ),
        50,
    ),
    "a filter that is not read": (
        with_object_stream(_TABLE, packed(_TABLE, b"/Type /ObjStm /Filter /LZWDecode")), 1_000,
    ),
    "encrypted, with an escaped name": (pdf(tree(1), more=b"/Encr#79pt 9 0 R"), 1_000),
}  # fmt: skip

TEXTS: dict[str, tuple[bytes, int]] = {
    "honest": (shown(stream(zlib.compress(LINES), FLATE)), 9),
    "one long string": (shown(stream(zlib.compress(ONE_STRING), FLATE)), 9),
    "brackets in strings": (
        shown(stream(zlib.compress(ONE_STRING.replace(b" word", b"(((a)))")), FLATE)), 11,
    ),
    "a bracket that is left open": (shown(stream(zlib.compress(ONE_STRING[:-8]), FLATE)), 9),
    "hex digits": (
        shown(stream(b"BT /F 1 Tf 10 780 Td <" + WORDS.hex().encode() + b"> Tj ET")), 9,
    ),
    "a comment that hides a bracket": (
        shown(stream(b"% (\n" + ONE_STRING + b"\n% )")), 9,
    ),
    "an escaped filter": (shown(stream(zlib.compress(LINES), b"/Filter /Fl#61teDecode")), 9),
    "a filter elsewhere": (
        shown(stream(zlib.compress(LINES), b"/Filter 30 0 R"), more={30: b"/FlateDecode"}), 9,
    ),
    "a short filter name": (shown(stream(zlib.compress(LINES), b"/Filter /Fl")), 9),
    "hexadecimal": (
        shown(stream(LINES.hex().encode() + b">", b"/Filter /ASCIIHexDecode")), 9,
    ),
    "base 85": (shown(stream(base64.a85encode(LINES) + b"~>", b"/Filter /ASCII85Decode")), 9),
    "compressed, then base 85": (
        shown(
            stream(
                base64.a85encode(zlib.compress(LINES)) + b"~>",
                b"/Filter [/ASCII85Decode /FlateDecode]",
            )
        ),
        9,
    ),
    "compressed twice": (
        shown(
            stream(zlib.compress(zlib.compress(LINES)), b"/Filter [/FlateDecode /FlateDecode]")
        ),
        9,
    ),
    "a picture's filter": (shown(stream(LINES, b"/Filter /DCTDecode")), 1_000),
    "a predictor": (
        shown(stream(zlib.compress(LINES), FLATE + b"/DecodeParms << /Predictor 12 >>")), 1_000,
    ),
    "an end that is none": (shown(stream(b"(endstream) Tj " + LINES)), 9),
    "a wrong length": (
        shown(stream(zlib.compress(LINES), FLATE).replace(b"/Length ", b"/Length 1 /L ")), 9,
    ),
    "broken": (shown(stream(zlib.compress(LINES)[:-200], FLATE)), 1_000),
    "ten times the same": (
        shown(b"[" + b"24 0 R " * 10 + b"]", more={24: stream(zlib.compress(LINES), FLATE)}), 90,
    ),
    "the same on ten pages": (shown(stream(zlib.compress(LINES), FLATE), pages=10), 90),
    "a form": (shown(stream(b"/A Do"), more=_FORMS), 9),
    "a form, ten times": (shown(stream(TEN), more=_FORMS), 90),
    "a form in a form": (
        shown(
            stream(TEN),
            more={21: stream(b"/B Do " * 10, FORM), 22: stream(zlib.compress(LINES), FORM + FLATE)},
        ),
        900,
    ),
    "a form with a comment after its name": (
        shown(stream(b"/A % x\nDo " * 10), more=_FORMS), 90,
    ),
    "a form with an escaped name": (shown(stream(b"/#41 Do " * 10), more=_FORMS), 90),
    "a form that claims to be a picture too": (
        shown(
            stream(b"/A Do"),
            more={21: stream(LINES, FORM + b"/Subtype /Image")},
        ),
        9,
    ),
    "a code for many characters": (
        shown(
            stream(b"BT /F 1 Tf (" + b"A" * 600 + b") Tj ET"),
            more={5: MAPPED_FONT, 6: stream(zlib.compress(_MAP), FLATE)},
        ),
        50,
    ),
    "a code for many characters, by its number": (
        shown(
            stream(b"BT /F 1 Tf (" + b"\\101" * 600 + b") Tj ET"),
            more={5: MAPPED_FONT, 6: stream(_MAP)},
        ),
        50,
    ),
    "a ligature": (
        shown(
            stream(b"BT /F 1 Tf (" + b"waffles " * 500 + b") Tj ET"),
            more={
                5: MAPPED_FONT,
                6: stream(b"1 beginbfchar <41> <006600660069> endbfchar"),
            },
        ),
        1,
    ),
    "a picture": (
        shown(
            stream(b"/A Do " * 9),
            more={21: stream(b"(" + b"a" * 90_000 + b")", b"/Subtype /Image /Filter /DCTDecode")},
        ),
        1,
    ),
}  # fmt: skip
