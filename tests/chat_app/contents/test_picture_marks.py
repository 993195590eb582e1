"""Pictures that agents make say so inside the file, and show the same picture."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from PIL import Image

from chat_app.contents import storage
from chat_app.contents.ai_marks import with_mark
from chat_app.contents.quota import ContentOwner
from tests import factories
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
        found = image.info.get("xmp") or image.info.get("XML:com.adobe.xmp") or ""
    return found.decode() if isinstance(found, bytes) else str(found)


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


@pytest.mark.parametrize(
    ("data", "mime_type"),
    [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 40, "image/png"),
        (picture("PNG") + b"caBX", "image/png"),
        (picture("JPEG", xmp=b"<x/>"), "image/jpeg"),
        (picture("GIF"), "image/gif"),
        (picture("PNG"), "image/jpeg"),
        (b"a,b\n", "text/csv"),
    ],
)
def test_another_file_stays_as_it_is(data: bytes, mime_type: str) -> None:
    assert with_mark(data, mime_type) == data


@pytest.mark.django_db
def test_only_pictures_of_agents_are_marked(settings: Settings, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path
    data = picture("PNG")

    def stored(owner: ContentOwner) -> bytes:
        made = storage.store(data, mime_type="image/png", filename="a.png", owner=owner)
        assert made.size_bytes == len(storage.read(made))
        return storage.read(made)

    assert stored(ContentOwner(user_id=factories.user().pk)) == data
    assert stored(ContentOwner(key="anonymous:1")) == data
    assert AI_MADE in xmp_of(stored(ContentOwner(key="chat:chat_1")))
