"""PDF files with the contents that a test checks on their pages."""

from __future__ import annotations

from io import BytesIO
from typing import Final

from PIL import Image

JAPANESE: Final = "日本語"
_FONTS: Final = (
    b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    # The font is not embedded: a reader has to know its encoding by name.
    (
        b"<< /Type /Font /Subtype /Type0 /BaseFont /Ryumin-Light /Encoding /90ms-RKSJ-H"
        b" /DescendantFonts [<< /Type /Font /Subtype /CIDFontType0 /BaseFont /Ryumin-Light"
        b" /CIDSystemInfo << /Registry (Adobe) /Ordering (Japan1) /Supplement 2 >>"
        b" /FontDescriptor << /Type /FontDescriptor /FontName /Ryumin-Light /Flags 4 >> >>] >>"
    ),
)
# Neither of the two keys matches an empty password.
_PASSWORD: Final = b" /Encrypt << /Filter /Standard /V 1 /R 2 /O <%b> /U <%b> /P -4 >>" % (
    b"11" * 32,
    b"22" * 32,
)


def _stream(dictionary: bytes, data: bytes) -> bytes:
    """Return a stream object."""
    return b"<< %b /Length %d >>\nstream\n%b\nendstream" % (dictionary, len(data), data)


def _jpeg_2000() -> bytes:
    """Return a blue picture in a format that browsers do not support."""
    buffer = BytesIO()
    Image.new("RGB", (40, 40), "blue").save(buffer, "JPEG2000")
    return buffer.getvalue()


def pdf(*texts: str, has_password: bool = False) -> bytes:
    """Return a file with a page for each text, with a red bar and a blue picture on each."""
    picture = _stream(
        b"/Type /XObject /Subtype /Image /Width 40 /Height 40 /Filter /JPXDecode", _jpeg_2000()
    )
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"", *_FONTS, picture]
    pages = []
    for text in texts:
        font, code = (b"/F2", "cp932") if text == JAPANESE else (b"/F1", "ascii")
        content = b"1 0 0 rg 50 50 500 60 re f q 120 0 0 120 50 200 cm /Im Do Q 0 g " + (
            b"BT %b 48 Tf 50 700 Td <%b> Tj ET" % (font, text.encode(code).hex().encode())
        )
        objects += [
            _stream(b"", content),
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R /Resources"
            b" << /Font << /F1 3 0 R /F2 4 0 R >> /XObject << /Im 5 0 R >> >> >>"
            % (len(objects) + 1),
        ]
        pages.append(b"%d 0 R" % len(objects))
    objects[1] = b"<< /Type /Pages /Kids [%b] /Count %d >>" % (b" ".join(pages), len(pages))
    data, places = b"%PDF-1.7\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return data + (
        b"xref\n0 %d\n0000000000 65535 f \n%btrailer << /Size %d /Root 1 0 R"
        b" /ID [<00> <00>]%b >>\nstartxref\n%d\n%%%%EOF\n"
        % (len(objects) + 1, table, len(objects) + 1, _PASSWORD * has_password, len(data))
    )
