"""The extent of a content that a model may count, from bytes that may lie about it."""

from __future__ import annotations

import io
import struct
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from django.apps import apps
from django.core.files.base import ContentFile
from django.db import connection
from PIL import Image

from chat_app.contents import extents, storage
from chat_app.contents.quota import ContentOwner
from chat_app.contents.wave import wave_file
from chat_app.models import Content
from tests import factories

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django import Settings

HOUR = 3_600_000

# Frames of MP3: 128 kbit/s at 44.1 kHz, 8 kbit/s at 24 kHz, 320 kbit/s at 48 kHz.
USUAL = b"\xff\xfb\x90\x00" + bytes(413)
SLOW = b"\xff\xf3\x14\xc0" + bytes(20)
FAST = b"\xff\xfb\xe4\x00" + bytes(956)
# A frame of AAC: 1,024 samples at 16 kHz.
ADTS = b"\xff\xf1\x60\x40\x02\x1f\xfc" + bytes(9)


def frames(frame: bytes, ms: float, of_one: float) -> bytes:
    return frame * round(ms / of_one)


def page(packets: list[bytes]) -> bytes:
    table = bytes(map(len, packets))
    return b"OggS" + bytes(22) + bytes([len(table)]) + table + b"".join(packets)


def opus(first: int, packets: int) -> bytes:
    audio = page([bytes([first]) + bytes(9)] * 100)
    return page([b"OpusHead" + bytes(11)]) + audio * (packets // 100)


def wave(seconds: int, *, hertz: int = 8000, per_second: int | None = None) -> bytes:
    data = bytearray(wave_file(bytes(8_000 * seconds), "g711_ulaw") or b"")
    struct.pack_into("<II", data, 24, hertz, hertz if per_second is None else per_second)
    return bytes(data)


SOUNDS = {
    "mp3": (frames(USUAL, HOUR / 60, 26.12), "audio/mpeg", 60_000),
    "mp3 at 8 kbit/s": (frames(SLOW, 1.5 * HOUR, 24), "audio/mpeg", 1.5 * HOUR),
    "mp3 of many bit rates": (
        frames(FAST, 60_000, 24) + frames(SLOW, HOUR, 24), "audio/mpeg", HOUR + 60_000,
    ),
    "mp3 that hides slow frames behind a fast one": (
        FAST[:600] + frames(SLOW, HOUR, 24), "audio/mpeg", HOUR,
    ),
    "mp3 with a picture before it": (
        b"ID3\x04\0\0" + bytes([0, 0, 78, 16]) + bytes(10_000) + frames(SLOW, 60_000, 24),
        "audio/mpeg", 60_000,
    ),
    "mp3 after noise": (b"\0" * 100 + frames(SLOW, HOUR, 24), "audio/mpeg", HOUR),
    "aac": (frames(ADTS, 60_000, 64), "audio/aac", 60_000),
    "opus": (opus(0x78, 3_000), "audio/ogg", 60_000),
    "opus of long packets": (opus(0x1B, 1_000), "audio/ogg", 0),
    "wave": (wave(60), "audio/wav", 60_000),
    "wave that says it is fast": (wave(60, per_second=2**31), "audio/wav", 60_000),
    "wave that says it is slow": (wave(60, hertz=100, per_second=2**31), "audio/wav", 80 * 60_000),
}  # fmt: skip


def extent(data: bytes, mime_type: str) -> int:
    """Return the extent of a content."""
    media_extent = extents.extent_of(data, mime_type, asker="a")
    assert media_extent is not None
    return media_extent


@pytest.mark.parametrize("name", SOUNDS)
def test_a_sound_lasts_at_least_as_long_as_it_plays(name: str) -> None:
    data, mime_type, plays = SOUNDS[name]
    assert plays * 0.999 <= extent(data, mime_type) <= max(plays * 1.1 + 500, 128_000)


@pytest.mark.parametrize(
    ("data", "mime_type", "least"),
    [
        (bytes(60_000), "audio/mpeg", 60_000),
        (b"\xff" * 60_000, "audio/mpeg", 60_000),
        (b"\x1aE\xdf\xa3" + bytes(60_000), "audio/webm", 10**9),
        (bytes(4) + b"ftypM4A " + bytes(60_000), "audio/mp4", 10**9),
        (b"#!AMR\n" + bytes(60_000), "audio/amr", 92_000),
        (b"RIFF\0\0\0\0WAVE" + bytes(60_000), "audio/wav", 60_000),
        (b"ID3", "audio/mpeg", 0),
        (b"\xff\xfb", "audio/mpeg", 0),
        (b"OggS", "audio/ogg", 0),
        (b"fLaC", "audio/flac", 0),
        (b"RIFF\0\0\0\0WAVEfmt ", "audio/wav", 0),
    ],
)
def test_a_sound_that_cannot_be_read_lasts_as_long_as_its_bytes_may(
    data: bytes, mime_type: str, least: int
) -> None:
    assert least <= extent(data, mime_type) <= 10**9


@pytest.mark.parametrize(
    ("size", "tiles"),
    [((1, 1), 1), ((768, 768), 4), ((4000, 3000), 24), ((9000, 10), 36)],
)
def test_a_picture_has_at_most_so_many_tiles(size: tuple[int, int], tiles: int) -> None:
    file = io.BytesIO()
    Image.new("1", size).save(file, "png")
    assert extent(file.getvalue(), "image/png") == tiles


@pytest.mark.parametrize(
    ("kind", "mime_type"),
    [
        ("TIFF", "image/tiff"),
        ("BMP", "image/bmp"),
        ("JPEG2000", "image/jp2"),
        ("TIFF", "image/png"),
    ],
)
def test_only_pictures_that_models_see_are_decoded(
    kind: str, mime_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = io.BytesIO()
    Image.new("L", (768, 768)).save(file, kind)
    decoded: list[str] = []
    decoder, accepts = Image.OPEN[kind]

    def decode(*arguments: Any) -> Any:
        decoded.append(kind)
        return decoder(*arguments)

    monkeypatch.setitem(Image.OPEN, kind, (decode, accepts))
    tiles = extent(file.getvalue(), mime_type)
    assert decoded == []
    # Models get other types by name only; a broken picture may have any size.
    assert tiles == (762 if mime_type == "image/png" else 0)


@pytest.mark.parametrize(
    ("data", "mime_type", "tokens"),
    [
        (b"plain", "text/plain", 2),
        (b"1,2,3", "text/csv", 5),
        ("👍".encode() * 9, "text/plain", 36),
        ("\N{GREEK SMALL LETTER ALPHA}".encode() * 9, "application/json", 9),
        ("\N{GREEK SMALL LETTER ALPHA}".encode("utf-16") * 9, "text/plain", 33),
        (b"\x81" * 300_000, "text/plain", 199_968),
    ],
)
def test_the_extent_of_a_text_is_what_a_model_may_count(
    data: bytes, mime_type: str, tokens: int
) -> None:
    assert extent(data, mime_type) == tokens


def test_an_unmeasured_file_has_no_extent() -> None:
    assert extent(bytes(99), "application/octet-stream") == 0


@pytest.mark.django_db
def test_an_extent_is_stored_once_and_read_of_what_was_stored_before(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MEDIA_ROOT = tmp_path
    owner = ContentOwner(user_id=factories.user().pk)
    sound = frames(SLOW, 60_000, 24)
    content = storage.store(sound, mime_type="audio/mpeg", filename="a.mp3", owner=owner)
    assert 60_000 <= (content.extent or 0) < 60_100
    Content.objects.update(extent=None)
    extents_by_handle = extents.extents_of([str(content.pk).upper(), "none", str(content.pk)])
    assert {
        stored_extent.amount for many in extents_by_handle.values() for stored_extent in many
    } == {content.extent}
    monkeypatch.setattr(extents, "extent_of", None)
    assert extents.extents_of([str(content.pk)])[str(content.pk)][0].amount == content.extent


@pytest.mark.django_db
def test_pdfs_and_sounds_that_were_measured_before_are_measured_again() -> None:
    for mime_type in ("audio/mpeg", "application/pdf", "image/png"):
        Content(mime_type=mime_type, size_bytes=1, extent=1, owner_key="visitor:1").save()
    migration = import_module("chat_app.migrations.0007_measure_media_again")
    migration.forget_extents(apps, connection.schema_editor())
    assert list(Content.objects.exclude(extent=None).values_list("mime_type", flat=True)) == [
        "image/png"
    ]


@pytest.mark.django_db
def test_texts_that_were_measured_before_are_measured_again() -> None:
    for mime_type in ("text/csv", "application/json", "image/png"):
        Content(mime_type=mime_type, size_bytes=1, extent=1, owner_key="visitor:1").save()
    migration = import_module("chat_app.migrations.0021_measure_texts_again")
    migration.forget_extents(apps, connection.schema_editor())
    assert list(Content.objects.exclude(extent=None).values_list("mime_type", flat=True)) == [
        "image/png"
    ]


@pytest.mark.django_db
def test_a_handle_of_several_owners_has_the_extents_of_all(
    settings: Settings, tmp_path: Path
) -> None:
    settings.MEDIA_ROOT = tmp_path
    handle = "5f0c1d7e-0000-4000-8000-000000000001"
    for number in range(2):
        row = Content(handle=handle, mime_type="audio/mpeg", size_bytes=1, extent=number + 1)
        row.owner_key = f"visitor:{number}"
        row.blob.save(str(row.pk), ContentFile(b"x"), save=False)
        row.save()
    assert sorted(
        stored_extent.amount for stored_extent in extents.extents_of([handle])[handle]
    ) == [1, 2]
