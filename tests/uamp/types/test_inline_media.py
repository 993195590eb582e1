"""Media inside a text: every spelling of base64 and of a `data:` URL that clients write."""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote, unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uamp.types.content import is_url
from uamp.types.inline_media import decode_base64, is_data_url, media_bytes, media_type_of

DATA = bytes(range(256)) + b"\xfb\xef\xbe>>>???"


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("QUJD", b"ABC"),
        ("QUI=", b"AB"),
        ("QQ==", b"A"),
        ("QUI", b"AB"),
        ("QQ", b"A"),
        ("QQ=", b"A"),
        ("QUI==", b"AB"),
        ("QR==", b"A"),
        ("+/8=", b"\xfb\xff"),
        ("-_8=", b"\xfb\xff"),
        ("-_8", b"\xfb\xff"),
        ("+_8", b"\xfb\xff"),
        ("QU\nJD", b"ABC"),
        ("QU\r\nJD\r\n", b"ABC"),
        (" Q U\tJ\fD\v", b"ABC"),
        ("QUI\n=", b"AB"),
        ("QUI= \n", b"AB"),
        ("", b""),
    ],
)
def test_every_spelling_of_base64(text: str, data: bytes) -> None:
    assert decode_base64(text) == media_bytes(text) == data


@pytest.mark.parametrize(
    "text",
    [
        "QU!D",
        "QUJD.",
        "QUJD#",
        "QUI%3D",
        "QUI=QUI=",
        "Q=UI",
        "Q",
        "QUJDR",
        "QUJ\x00",
        "QUJÃ",
        "QUJ\u200b",
        "\ufeffQUJD",
        "\ud800",
        "https://a.b/c",
    ],
)
def test_text_that_is_not_base64_is_refused(text: str) -> None:
    for decode in (decode_base64, media_bytes):
        with pytest.raises(ValueError, match=r"."):
            decode(text)


@pytest.mark.parametrize(
    ("url", "media_type", "data"),
    [
        ("data:image/png;base64,QUI=", "image/png", b"AB"),
        ("DATA:image/png;base64,QUI=", "image/png", b"AB"),
        ("Data:Image/PNG;BASE64,QUI", "image/png", b"AB"),
        (" \ndata:image/png;base64,QUI=", "image/png", b"AB"),
        ("data:text/plain;charset=utf-8;base64,QUI=", "text/plain", b"AB"),
        ("data:text/plain;base64;charset=utf-8,QUI=", "text/plain", b"AB"),
        ("data:text/plain; charset=utf-8; base64 ,QUI=", "text/plain", b"AB"),
        ("data:;base64,QUI=", "", b"AB"),
        ("data:image/png;base64,QUI%3D", "image/png", b"AB"),
        ("data:image/png;base64,%51UI%3d%0A", "image/png", b"AB"),
        ("data:image/png;base64,%2B%2F8", "image/png", b"\xfb\xff"),
        ("data:image/png;base64,-_8\r\n", "image/png", b"\xfb\xff"),
        ("data:image/png;base64,QUI=#page=2", "image/png", b"AB"),
        ("data:image/png;base64,", "image/png", b""),
        ("data:,AB", "", b"AB"),
        ("data:text/plain,a%20b,c;base64,%C3%A9", "text/plain", b"a b,c;base64,\xc3\xa9"),
        ("data:text/plain;charset=utf-8,é?x=1#y", "text/plain", "é?x=1".encode()),
        ("data:text/csv,a=1%\n%zz%4", "text/csv", b"a=1%\n%zz%4"),
    ],
)
def test_every_spelling_of_a_data_url(url: str, media_type: str, data: bytes) -> None:
    assert media_bytes(url) == data
    assert media_type_of(url) == media_type
    assert is_data_url(url)
    assert is_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "data:image/png;base64",
        "data:image/png;base64#,QUI=",
        "data:image/png;base64,QU!=",
        "data:image/png;base64,QU%21=",
        "data:image/png;base64,Ãé",
        "data:text/plain," + "%" * 10_000,
        "data:text/plain,\ud800",
    ],
)
def test_a_data_url_without_readable_data(url: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        media_bytes(url)


@pytest.mark.parametrize("text", ["", "QUJD", "https://a.b/c", "database", "/data:,x", "x data:,y"])
def test_text_that_is_not_a_data_url_is_not_taken_for_one(text: str) -> None:
    assert not is_data_url(text)
    assert media_type_of(text) == ""


@given(st.binary(max_size=200), st.integers(1, 9))
def test_any_bytes_come_back_from_every_spelling(data: bytes, width: int) -> None:
    for encoded in (b64encode(data).decode(), urlsafe_b64encode(data).decode()):
        broken = "\r\n".join(
            encoded[start : start + width] for start in range(0, len(encoded), width)
        )
        for text in (encoded, encoded.rstrip("="), broken):
            assert decode_base64(text) == data
            assert media_bytes(f"data:x/y;base64,{text}") == data
            assert media_bytes(f"data:x/y;base64,{quote(text)}") == data
    assert media_bytes(f"data:x/y,{quote(data)}") == data


@given(st.text(alphabet="%%%=\r\n _.2f0A4DZé", max_size=40))
def test_escapes_are_resolved_as_the_standard_library_does(text: str) -> None:
    assert media_bytes(f"data:,{text}") == unquote_to_bytes(text)
