"""The bytes of a file decide its type; its label and its name are hints."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

import uamp
from chat_app.contents import media_types, quota, references
from tests import factories
from tests.chat_app.contents import samples as of

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django import Settings

NONE = "application/octet-stream"


@pytest.mark.parametrize(
    ("data", "label", "stored"),
    [
        # Pictures that are shown, whatever their label says.
        (of.MPO, "image/jpeg", "image/jpeg"),
        (of.MPO, NONE, "image/jpeg"),
        (of.MPO, "image/mpo", "image/jpeg"),
        (of.JPEG, NONE, "image/jpeg"),
        (of.JPEG, "", "image/jpeg"),
        (of.JPEG, "image/jpg", "image/jpeg"),
        (of.JPEG, "image/pjpeg", "image/jpeg"),
        (of.JPEG, "IMAGE/JPEG; q=1", "image/jpeg"),
        (of.JPEG, "image/webp", "image/jpeg"),
        (of.JPEG, "image/heic", "image/jpeg"),
        (of.JPEG, "text/plain", "image/jpeg"),
        (of.PNG, "image/jpeg", "image/png"),
        (of.PNG, "image/x-png", "image/png"),
        (of.PNG, "image/apng", "image/png"),
        (of.PNG, "application/pdf", "image/png"),
        (of.GIF, "image/png", "image/gif"),
        (of.WEBP, "image/jpeg", "image/webp"),
        (of.WEBP, NONE, "image/webp"),
        # Pictures that are files.
        (of.TIFF, "image/tiff", "image/tiff"),
        (of.TIFF, "image/tif", "image/tiff"),
        (of.TIFF, NONE, "image/tiff"),
        (of.TIFF, "image/jpeg", "image/tiff"),
        (of.BIG_ENDIAN_TIFF, "image/x-tiff", "image/tiff"),
        (of.TIFF, "image/x-canon-cr2", "image/x-canon-cr2"),
        (of.BMP, "image/bmp", "image/bmp"),
        (of.BMP, "image/x-ms-bmp", "image/bmp"),
        (of.BMP, NONE, "image/bmp"),
        (of.HEIC, "image/heic", "image/heic"),
        (of.HEIC, "image/heif", "image/heif"),
        (of.HEIC, NONE, "image/heic"),
        (of.SHARED_HEIC, NONE, "image/heic"),
        (of.HEIC, "image/jpeg", "image/heic"),
        (of.AVIF, "image/avif", "image/avif"),
        (of.AVIF, NONE, "image/avif"),
        (of.SHARED_AVIF, "video/mp4", "image/avif"),
        (b"\0\0\1\0\1\0\x10\x10\xff", "image/x-icon", "image/x-icon"),
        # Sound and film.
        (of.WAV, "audio/x-wav", "audio/wav"),
        (of.WAV, "audio/wave", "audio/wav"),
        (of.WAV, NONE, "audio/wav"),
        (of.WAV, "audio/mpeg", "audio/wav"),
        (of.MP3, "audio/mp3", "audio/mpeg"),
        (of.MP3, "audio/wav", "audio/mpeg"),
        (of.FLAC, "audio/x-flac", "audio/flac"),
        (of.M4A, "audio/x-m4a", "audio/mp4"),
        (of.M4A, NONE, "audio/mp4"),
        (of.MP4, "audio/mp4", "audio/mp4"),
        (of.MP4, "audio/mpeg", "audio/mp4"),
        (of.MP4, NONE, "video/mp4"),
        (of.QUICKTIME, NONE, "video/quicktime"),
        (of.QUICKTIME, "video/mp4", "video/mp4"),
        (of.OGG, NONE, "audio/ogg"),
        (of.OGG, "audio/opus", "audio/ogg"),
        (of.FILM_OGG, NONE, "video/ogg"),
        (of.WEBM, "audio/webm;codecs=opus", "audio/webm"),
        (of.WEBM, NONE, "video/webm"),
        (of.MATROSKA, NONE, "video/x-matroska"),
        (of.TRANSPORT_STREAM, "video/mp2t", "video/mp2t"),
        (of.RECORDED_STREAM, "video/mp2t", "video/mp2t"),
        (of.TRANSPORT_STREAM, NONE, "video/mp2t"),
        (b"\xff\xf1\x50\x80" * 9, "audio/aac", "audio/aac"),
        (b"\xff\xfe\0\0 unknown", "video/mp2t", NONE),
        # Documents and texts.
        (of.PDF, "application/x-pdf", "application/pdf"),
        (of.PDF, "audio/mpeg", "application/pdf"),
        (b"\xff no document", "application/pdf", NONE),
        (b"no document", "application/pdf", "text/plain"),
        (of.ZIP, "application/x-zip-compressed", "application/zip"),
        (of.ZIP, "application/vnd.ms-excel", "application/vnd.ms-excel"),
        (of.TYPESCRIPT, "video/mp2t", "text/plain"),
        (of.TYPESCRIPT, "video/vnd.dlna.mpeg-tts", "text/plain"),
        (b"module example.org/m\n", "audio/x-mod", "text/plain"),
        (b"#EXTM3U\na.mp3\n", "audio/x-mpegurl", "text/plain"),
        (b"{1}{2}subtitle\n", "image/vnd.dvb.subtitle", "text/plain"),
        (b"a;b\n1;2\n", "application/vnd.ms-excel", "text/csv"),
        (b"a,b\n", "application/csv", "text/csv"),
        (b"FORM 1040\n", "text/plain", "text/plain"),
        (b"BM is two letters", "text/plain", "text/plain"),
        (b"GIF is a format", "text/plain", "text/plain"),
        (of.UTF_16, "text/csv", "text/csv"),
        (b"a", "text/x-markdown", "text/markdown"),
        (of.PAGE, "application/vnd.ms-excel", "text/html"),
        (of.PAGE, "text/plain", "text/plain"),
        (of.PAGE, NONE, NONE),
        (b"<svg/>", "image/svg+xml", "image/svg+xml"),
        (b"\0\1\2", "application/x-thing", "application/x-thing"),
    ],
)
def test_bytes_decide(data: bytes, label: str, stored: str) -> None:
    assert media_types.sniff(data, declared=label) == stored


# Frames of MPEG 1 layer III at 128 kbit/s and of ADTS, and pictures that few programs make.
FRAMES = (b"\xff\xfb\x90\x64" + b"\x55" * 413) * 4
AAC = (b"\xff\xf1\x50\x80\x02\x1f\xfc" + b"\x21" * 9) * 4
CODESTREAM = b"\xff\x4f\xff\x51\0\x2f\0\0\xff"
JXL = b"\xff\x0a\x01\x02\xff\x90"
PHOTOSHOP = b"8BPS\0\1" + bytes(20)
ICON = b"\0\0\1\0\1\0\x10\x10\0\0\1\0\x20\0" + b"\xff" * 40
OLD = "// Größe\n".encode("cp1252")
SHIFT_JIS = "日付,金額\n東京,1\n".encode("cp932")


def bitmap(header: int, reserved: bytes = bytes(4)) -> bytes:
    """Return the beginning of a bitmap with a header of this size."""
    start = (14 + header).to_bytes(4, "little") + header.to_bytes(4, "little")
    return b"BM" + (300).to_bytes(4, "little") + reserved + start + b"\xff\1\0" * 90


def container(*brands: bytes) -> bytes:
    """Return the beginning of an ISO base media file with these brands."""
    size = (12 + 4 * len(brands)).to_bytes(4, "big")
    return size + b"ftyp" + brands[0] + bytes(4) + b"".join(brands[1:]) + b"\xff" * 30


@pytest.mark.parametrize(
    ("data", "label", "name", "stored"),
    [
        # Labels that name no type.
        *(
            (of.JPEG, label, "", "image/jpeg")
            for label in (
                *("image/*", "*/*", "jpeg", '"image/jpeg"', "image/jpeg, image/jpeg", "image/"),
                *("undefined", "null", "file/unknown", "image/jpeg;charset=utf-8", " ", "é/ü"),
            )
        ),
        (of.JPEG + of.MP4, NONE, "", "image/jpeg"),
        (b"a,b\n", "*/*", "a.csv", "text/csv"),
        # Pictures that are files, under the label of another.
        (JXL, "image/jxl", "", "image/jxl"),
        (JXL, NONE, "", NONE),
        (CODESTREAM, "image/jp2", "", "image/j2c"),
        (CODESTREAM, "image/j2k", "", "image/j2k"),
        (PHOTOSHOP, "image/jpeg", "", "image/vnd.adobe.photoshop"),
        (ICON, "image/png", "", "image/x-icon"),
        (ICON, "image/vnd.microsoft.icon", "", "image/vnd.microsoft.icon"),
        *((bitmap(size), "image/bmp", "", "image/bmp") for size in (12, 16, 40, 46, 48, 64, 124)),
        (bitmap(40, b"\1\0\2\0"), NONE, "", "image/bmp"),
        (container(b"mif1", b"mif1", b"MA1B"), "image/avif", "", "image/avif"),
        (container(b"mif2", b"mif2", b"jpeg"), "image/heif", "", "image/heif"),
        (container(b"miaf"), NONE, "", "image/heif"),
        (container(b"msf1", b"hevc"), "image/heic-sequence", "", "image/heic"),
        # Sounds without a header, which begin with a frame.
        *((FRAMES, label, "", "audio/mpeg") for label in (NONE, "audio/wav", "video/mp4")),
        (FRAMES, "application/pdf", "", "audio/mpeg"),
        (AAC, NONE, "", "audio/aac"),
        (AAC, "text/plain", "", "audio/aac"),
        (FRAMES[:500], NONE, "", NONE),
        # Documents behind other bytes.
        (b"\n" + of.PDF, NONE, "", "application/pdf"),
        (b"\xef\xbb\xbf" + of.PDF, "text/plain", "", "application/pdf"),
        (b"mail\r\n" + of.PDF + b"\xff", "application/pdf", "", "application/pdf"),
        (b"mail\r\n" + of.PDF + b"\xff", NONE, "", NONE),
        (b"About %PDF-1.7", "text/plain", "", "text/plain"),
        # Texts under the labels of programs that share their name extension.
        (of.TYPESCRIPT, "application/rls-services+xml", "main.rs", "text/plain"),
        (of.TYPESCRIPT, "model/vnd.mts", "a.mts", "text/plain"),
        (of.TYPESCRIPT, "video/vnd.dlna.mpeg-tts", "a.TS", "text/plain"),
        (of.TYPESCRIPT, "font/ttf", "a.txt", "text/plain"),
        (of.TYPESCRIPT, "application/gzip", "a.log", "text/plain"),
        (b"a,b\n", "application/zip", "a.csv", "text/csv"),
        (
            b"a,b\n",
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            "a.csv",
            "text/csv",
        ),
        (b"{}", "application/vnd.api+json", "a.json", "application/vnd.api+json"),
        (b"<a/>", "application/atom+xml", "a.xml", "application/atom+xml"),
        (b"a = 1", "application/javascript", "a.js", "application/javascript"),
        (b"name", "application/msword", "a.doc", "application/msword"),
        # Texts in encodings from before Unicode.
        (OLD, "video/mp2t", "a.ts", "text/plain"),
        (OLD, NONE, "a.c", "text/plain"),
        (SHIFT_JIS, "application/vnd.ms-excel", "a.csv", "text/csv"),
        (SHIFT_JIS, NONE, "a.CSV", "text/csv"),
        (SHIFT_JIS, NONE, "a.bin", NONE),
        (b"\xd0\xcf\x11\xe0\0\0", "application/vnd.ms-excel", "a.csv", "application/vnd.ms-excel"),
    ],
)
def test_bytes_and_names_decide_where_a_label_is_of_no_use(
    data: bytes, label: str, name: str, stored: str
) -> None:
    assert media_types.sniff(data, declared=label, filename=name) == stored


@pytest.mark.parametrize(
    ("name", "label", "stored"),
    [
        ("main.ts", NONE, "text/plain"),
        ("a.csv", "application/vnd.ms-excel", "text/csv"),
        ("a.tsv", "application/vnd.ms-excel", "text/tab-separated-values"),
        ("a.json", "audio/x-mod", "application/json"),
        ("a.bin", NONE, NONE),
    ],
)
def test_a_name_says_which_text_it_is(name: str, label: str, stored: str) -> None:
    assert media_types.sniff(of.TYPESCRIPT, declared=label, filename=name) == stored


@pytest.mark.parametrize(
    "label", ["image/png", "image/jpg", "image/tiff", "image/bmp", "image/heic", "image/avif"]
)
@pytest.mark.parametrize("data", [b"no picture", of.PAGE, of.PDF, b"\xff\0\xff", of.MP4])
def test_an_invalid_picture_is_refused_with_the_true_reason(data: bytes, label: str) -> None:
    with pytest.raises(media_types.InvalidMedia, match=r"^The picture cannot be"):
        media_types.sniff(data, declared=label)


@pytest.mark.parametrize("data", [of.JPEG[:40], of.PNG[:40], b"GIF89a not a picture"])
def test_a_broken_picture_is_a_file_unless_it_says_that_it_is_one(data: bytes) -> None:
    assert media_types.sniff(data, declared=NONE) == NONE
    with pytest.raises(media_types.InvalidMedia):
        media_types.sniff(data, declared="image/jpeg")


def base64_text(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (uamp.ImageContent(image=base64_text(of.MPO)), ("image", "jpeg")),
        (uamp.ImageContent(image=base64_text(of.MPO), format="jpg"), ("image", "jpeg")),
        (uamp.ImageContent(image=base64_text(of.PNG), format="jpeg"), ("image", "png")),
        (uamp.ImageContent(image=base64_text(of.TIFF)), ("file", "image/tiff", "image.tiff")),
        (
            uamp.ImageContent(image=base64_text(of.HEIC), format="heic"),
            ("file", "image/heic", "image.heic"),
        ),
        (
            uamp.ImageContent(image=base64_text(of.AVIF), format="jpeg"),
            ("file", "image/avif", "image.avif"),
        ),
        (uamp.AudioContent(audio=base64_text(of.WAV), format="x-wav"), ("audio", "wav")),
        (uamp.AudioContent(audio=base64_text(of.MP3), format="mpeg"), ("audio", "mp3")),
        (uamp.AudioContent(audio=base64_text(of.OGG), format="opus"), ("audio", "opus")),
        (uamp.AudioContent(audio=base64_text(of.PNG), format="mp3"), ("image", "png")),
        (
            uamp.VideoContent(video=base64_text(of.TYPESCRIPT), format="mp2t"),
            ("file", "text/plain", "text"),
        ),
        (uamp.VideoContent(video=base64_text(of.MP4), format="mp4"), ("video", "mp4")),
        (
            uamp.FileContent(file=base64_text(of.PDF), filename="a.pdf", mime_type=NONE),
            ("file", "application/pdf", "a.pdf"),
        ),
        (
            uamp.FileContent(
                file=base64_text(of.TYPESCRIPT), filename="a.ts", mime_type="video/mp2t"
            ),
            ("file", "text/plain", "a.ts"),
        ),
    ],
)
def test_an_item_is_what_its_bytes_are(
    item: uamp.ContentItem, expected: tuple[str, ...], settings: Settings, tmp_path: Path
) -> None:
    settings.MEDIA_ROOT = tmp_path
    owner = quota.ContentOwner(user_id=factories.user().pk)
    (stored,) = references.ingest([item], owner=owner)
    # What refers to a content is described alike.
    (again,) = references.ingest([stored], owner=owner)
    for described in (stored, again):
        match described:
            case uamp.FileContent():
                assert ("file", described.mime_type, described.filename) == expected
            case uamp.ImageContent() | uamp.AudioContent() | uamp.VideoContent():
                assert (str(type(described).__struct_config__.tag), described.format) == expected


@pytest.mark.django_db
def test_a_picture_by_reference_that_is_not_shown_is_a_file() -> None:
    ada = factories.user("ada")
    content = factories.content(ada, of.TIFF, mime_type="image/tiff", filename="scan.tif")
    item = uamp.ImageContent(image=uamp.MediaUrl(url=f"/api/content/{content.pk}"))
    (stored,) = references.ingest([item], owner=quota.ContentOwner(user_id=ada.pk))
    assert isinstance(stored, uamp.FileContent)
    assert (stored.filename, stored.mime_type) == ("scan.tif", "image/tiff")
