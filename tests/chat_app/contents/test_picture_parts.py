"""Files whose headers have more parts than any camera or program writes: they cost time to read."""

from __future__ import annotations

import io
import struct
import zlib

import pytest
from PIL import Image

from chat_app.contents import media_types, pictures, signatures
from chat_app.contents.extents import extent_of
from chat_app.people.pictures import InvalidPicture, square_of


def saved(file_format: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (300, 300), "red").save(file, file_format)
    return file.getvalue()


def jpeg(segments: bytes) -> bytes:
    data = saved("JPEG")
    return data[:2] + segments + data[2:]


def png(chunks: int) -> bytes:
    data, body = saved("PNG"), b"prVt"
    # After the signature and the header.
    return (
        data[:33]
        + (struct.pack(">I", 0) + body + struct.pack(">I", zlib.crc32(body))) * chunks
        + data[33:]
    )


def gif(blocks: bytes) -> bytes:
    data = saved("GIF")
    start = data.index(b"!") if b"!" in data[:900] else data.index(b",", 13)
    return data[:start] + blocks + data[start:]


APP = b"\xff\xe5\x00\x02"
EXIF = b"\xff\xe1\x00\x0cExif\0\0data"
PROFILE = b"\xff\xe2\xff\xf0" + b"p" * 0xFFEE

REFUSED = {
    "segments of a JPEG": ("image/jpeg", jpeg(APP * 2000)),
    "pieces of Exif data": ("image/jpeg", jpeg(EXIF * 101)),
    "bytes between segments": ("image/jpeg", jpeg(b"junk" * 2000)),
    "chunks of a PNG": ("image/png", png(60_000)),
    "blocks of a comment": ("image/gif", gif(b"!\xfe" + b"\1a" * 60_000 + b"\0")),
    "bytes between blocks": ("image/gif", gif(b"x" * 120_000)),
}
READ = {
    "a profile in 255 segments": ("image/jpeg", jpeg(PROFILE * 255)),
    "a few pieces of Exif data": ("image/jpeg", jpeg(EXIF * 3)),
    "a PNG of small chunks": ("image/png", png(20_000)),
    "a long comment": ("image/gif", gif(b"!\xfe" + (b"\xff" + b"a" * 255) * 4000 + b"\0")),
}


@pytest.mark.parametrize(("label", "data"), REFUSED.values(), ids=REFUSED)
def test_a_picture_of_too_many_parts_is_refused(label: str, data: bytes) -> None:
    with pytest.raises(media_types.InvalidMedia):
        media_types.sniff(data, declared=label)
    assert media_types.sniff(data, declared="") == "application/octet-stream"
    with pytest.raises(InvalidPicture):
        square_of(data)


BROKEN = [
    b"\xff\xd8\xff\x01\x00\x02" * 4,
    b"\xff\xd8\xff\xc0\x00\x08\x08\x00\x01\x00\x01\x09",
    b"\xff\xd8\xff\xdb\x00\x05\x30aa\xff\xda",
    b"\xff\xd8\xff",
    b"\x89PNG\r\n\x1a\n\0\0\0\x01IHDR",
    b"GIF89a\x01",
    b"RIFF\x04\0\0\0WEBPVP8 ",
]


@pytest.mark.parametrize("data", BROKEN)
def test_a_broken_picture_is_refused(data: bytes) -> None:
    kind = signatures.type_of(data)
    assert kind in media_types.PILLOW_FORMATS
    with pytest.raises(media_types.InvalidMedia):
        media_types.sniff(data, declared=kind)
    assert extent_of(data, kind, asker="a")


@pytest.mark.parametrize(("label", "data"), READ.values(), ids=READ)
def test_a_picture_of_many_parts_is_read(label: str, data: bytes) -> None:
    assert media_types.sniff(data, declared=label) == label


def test_the_reads_of_a_picture_are_limited() -> None:
    with pytest.raises(pictures.TooManyParts):
        pictures.open_picture(jpeg(APP * 2000), formats=("JPEG",))


# Comments that a backtracking expression could read in 2^n ways.
PAGES = [
    (b"<!---->" * 585 + b"x", "text/plain"),
    (b"<!-- -->\n" * 400 + b"<p>", "text/plain"),
    (b"<!--" * 1000, "text/plain"),
    (b"<?xml " * 600, "text/plain"),
    (b" " * 4000, "text/plain"),
    (b"<?xml version='1.0'?><!-- a --> <!-- <b> --><html>", "text/html"),
    (b"<!-- a -- b --><svg >", "image/svg+xml"),
]


@pytest.mark.parametrize(("data", "kind"), PAGES)
def test_comments_before_a_page_are_read_in_one_way(data: bytes, kind: str) -> None:
    stored = media_types.sniff(data, declared="application/vnd.ms-excel")
    assert stored == kind or (kind == "text/plain" and stored != "text/html")
