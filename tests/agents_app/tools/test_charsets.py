"""Bytes of the web as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_app.tools.charsets import decode


@pytest.mark.parametrize(
    ("data", "charset", "text"),
    [
        ("é".encode(), "utf-8", "é"),
        ("é".encode(), "UTF8", "é"),
        ("é".encode(), None, "é"),
        (b"\xe9\x80", None, "é€"),
        (b"\xe9\x80", "latin-1", "é€"),
        (b"\xe9\x80", "us-ascii", "é€"),
        (b"\xe9x", "utf-8", "\N{REPLACEMENT CHARACTER}x"),
        ("é".encode("utf-16-le"), "utf-16le", "é"),
        (b"\x83e\x83X\x83g", "Shift_JIS", "テスト"),
        (b"\xef\xbb\xbf\xc3\xa9", "latin-1", "é"),
        (b"\xff\xfe\xe9\x00", None, "é"),
        (b"\xfe\xff\x00\xe9", "utf-8", "é"),
        (b"<meta charset=koi8-r>\xd6", None, "<meta charset=koi8-r>ж"),
        (b"<META x='; charset = koi8-r'>\xd6", None, "<META x='; charset = koi8-r'>ж"),
        (b"<meta charset=koi8-r>\xc3\xa9", "utf-8", "<meta charset=koi8-r>é"),
        (b"<meta charset='utf-16'>\xc3\xa9", None, "<meta charset='utf-16'>é"),
    ],
)  # fmt: skip
def test_what_says_the_encoding_decides(data: bytes, charset: str | None, text: str) -> None:
    assert decode(data, charset) == text


@pytest.mark.parametrize(
    "charset",
    [
        *("klingon", "", "utf-8\0", "../x", "x" * 500, "é"),
        *("hex", "zlib", "idna", "punycode", "undefined", "unicode_escape", "utf-7", "rot13"),
    ],
)
def test_an_encoding_unknown_to_the_web_is_ignored(charset: str) -> None:
    assert decode("é\\x".encode(), charset) == "é\\x"


@given(st.binary(max_size=200), st.sampled_from([None, "utf-8", "utf-16", "gb18030", "iso2022_jp"]))
def test_all_bytes_are_some_text(data: bytes, charset: str | None) -> None:
    assert isinstance(decode(data, charset), str)
