"""Files that agents make say so inside the file, and show or play the same."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import pytest
from PIL import Image

from chat_app.contents import measures, storage
from chat_app.contents.extents import kind_of
from chat_app.contents.marks.ai_marks import with_mark
from chat_app.contents.quota import ContentOwner
from chat_app.contents.wave import wave_file
from tests import factories
from tests.journeys.pdf_files import pdf
from uamp.digital_source import AI_MADE

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django import Settings

KINDS = {"PNG": "image/png", "JPEG": "image/jpeg"}


def picture(kind: str, **options: object) -> bytes:
    """Return the bytes of a picture."""
    buffer = io.BytesIO()
    Image.effect_noise((40, 30), 50).convert("RGB").save(buffer, kind, **options)
    return buffer.getvalue()


def xmp_of(data: bytes) -> str:
    """Return the XMP packet that another library reads from a picture."""
    with Image.open(io.BytesIO(data)) as image:
        image.load()
        xmp = image.info.get("xmp") or image.info.get("XML:com.adobe.xmp") or ""
    return xmp.decode() if isinstance(xmp, bytes) else str(xmp)


def pixels_of(data: bytes) -> bytes:
    """Return the pixels of a picture."""
    with Image.open(io.BytesIO(data)) as image:
        return image.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_has_the_mark_and_the_same_pixels(kind: str) -> None:
    data = picture(kind)
    marked = with_mark(data, KINDS[kind])
    assert f'Iptc4xmpExt:DigitalSourceType="{AI_MADE}"' in xmp_of(marked)
    assert pixels_of(marked) == pixels_of(data)
    with Image.open(io.BytesIO(marked)) as image:
        image.verify()
    # Marking it again changes nothing.
    assert with_mark(marked, KINDS[kind]) == marked


# A JUMBF box with its description, as in a chunk of PNG.
C2PA = b"\0\0\1\0caBX\0\0\1\0jumb\0\0\0\x1ejumdc2pa"


@pytest.mark.parametrize("letters", [b"jumb", b"caBX", b"jumd"])
def test_letters_that_occur_by_chance_are_not_taken_for_metadata(letters: bytes) -> None:
    data = picture("PNG") + letters
    assert AI_MADE in xmp_of(with_mark(data, "image/png"))


@pytest.mark.parametrize(
    ("data", "mime_type"),
    [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 40, "image/png"),
        (picture("PNG") + C2PA, "image/png"),
        (picture("JPEG") + C2PA, "image/jpeg"),
        (picture("JPEG", xmp=b"<x/>"), "image/jpeg"),
        (picture("GIF"), "image/gif"),
        (picture("PNG"), "image/jpeg"),
        (b"a,b\n", "text/csv"),
    ],
)
def test_another_file_stays_as_it_is(data: bytes, mime_type: str) -> None:
    assert with_mark(data, mime_type) == data


FRAMES = (b"\xff\xfb\x90\x00" + bytes(413)) * 20
TITLE = b"TIT2\0\0\0\x0f\0\0\x03abcdefghijklmn"
MOVIE = b"\0\0\0\x10ftypM4A \0\0\0\0" + b"\0\0\0\x0cmdatabcd"
WAVE = wave_file(bytes(range(9)), "g711_ulaw") or b""


def wide_webp() -> bytes:
    """Return a WebP file with transparency, which has the extended form."""
    buffer = io.BytesIO()
    Image.new("RGBA", (40, 30), (255, 0, 0, 9)).save(buffer, "WEBP", exif=b"Exif\0\0II*\0")
    return buffer.getvalue()


FILES = {
    "webp": ("image/webp", wide_webp()),
    "wave": ("audio/wav", WAVE),
    "mp3": ("audio/mpeg", FRAMES),
    "mp3 with a title": ("audio/mpeg", b"ID3\x04\0\0\0\0\0\x19" + TITLE + FRAMES),
    "mp3 of an older version": ("audio/mpeg", b"ID3\x03\0\0\0\0\0\x19" + TITLE + FRAMES),
    "m4a": ("audio/mp4", MOVIE),
    "mp4": ("video/mp4", MOVIE),
    "pdf": ("application/pdf", pdf("First", "Second")),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_has_the_mark_once_and_the_same_media(name: str) -> None:
    mime_type, data = FILES[name]
    marked = with_mark(data, mime_type)
    assert marked.count(AI_MADE.encode()) == 1
    assert with_mark(marked, mime_type) == marked
    if kind_of(mime_type) in {"sound", "pdf"}:
        measured = measures.measure_here(data, mime_type)
        assert measured <= measures.measure_here(marked, mime_type) <= measured + 500
    match mime_type:
        case "image/webp":
            assert AI_MADE in xmp_of(marked)
            assert pixels_of(marked) == pixels_of(data)
        case "audio/wav":
            # The samples stay in their place, and the size says where the file ends.
            assert marked[8 : len(data)] == data[8:]
            assert int.from_bytes(marked[4:8], "little") == len(marked) - 8
            assert marked[len(data) : len(data) + 4] == b"_PMX"
        case "audio/mpeg":
            assert marked.endswith(FRAMES)
            size = sum(byte << 7 * (3 - at) for at, byte in enumerate(marked[6:10]))
            assert marked[10 + size :] == FRAMES
            assert (TITLE in marked) == (TITLE in data)
        case "application/pdf":
            assert marked.startswith(data)
            table = marked[int(marked.split()[-2]) :]
            assert table.startswith(b"xref")
            for number, place in re.findall(rb"(\d+) 1\n(\d{10}) 00000 n", table):
                assert marked[int(place) :].startswith(number + b" 0 obj\n<<")
            assert table.count(b" 00000 n") == 2
        case _:
            assert marked.startswith(data)
            assert int.from_bytes(marked[len(data) : len(data) + 4], "big") == len(marked) - len(
                data
            )


@pytest.mark.parametrize(
    ("data", "mime_type"),
    [
        (picture("WEBP"), "image/webp"),
        (WAVE[:-3], "audio/wav"),
        (WAVE[:4] + bytes(4) + WAVE[8:], "audio/wav"),
        (b"ID3\x04\0\x80\0\0\0\x19" + TITLE + FRAMES, "audio/mpeg"),
        (b"ID3\x02\0\0\0\0\0\x19" + TITLE + FRAMES, "audio/mpeg"),
        (b"ID3\x04\0\0\x7f\x7f\x7f\x7f" + FRAMES, "audio/mpeg"),
        (MOVIE[:-1], "audio/mp4"),
        (MOVIE + b"\0\0\0\0free", "video/mp4"),
        (pdf("Secret", has_password=True), "application/pdf"),
        (pdf("Text")[:-20], "application/pdf"),
        (pdf("Text").replace(b"/Type /Catalog", b"/Metadata 1 0 R"), "application/pdf"),
        (pdf("Text") + b"% /ByteRange\nstartxref\n9\n%%EOF", "application/pdf"),
    ],
)
def test_a_file_that_is_not_understood_to_its_end_stays_as_it_is(
    data: bytes, mime_type: str
) -> None:
    assert with_mark(data, mime_type) == data


@pytest.mark.django_db
def test_only_pictures_of_agents_are_marked(settings: Settings, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path
    data = picture("PNG")

    def stored(owner: ContentOwner) -> bytes:
        content = storage.store(data, mime_type="image/png", filename="a.png", owner=owner)
        assert content.size_bytes == len(storage.read(content))
        return storage.read(content)

    assert stored(ContentOwner(user_id=factories.user().pk)) == data
    assert stored(ContentOwner(key="anonymous:1")) == data
    assert AI_MADE in xmp_of(stored(ContentOwner(key="chat:chat_1")))
