"""Previews of pictures that browsers do not show: how they are drawn, who reads them."""

from __future__ import annotations

import base64
import io
import struct
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest
from django.db import connection
from django.test import Client
from PIL import ExifTags, Image, ImageCms

from agents_app.workers.child_processes import PROCESSES, NoneFree
from chat_app.contents import drawing, previews, storage
from chat_app.contents.drawing import DRAWN_TYPES, PREVIEW_BYTES, PREVIEW_PIXELS, draw
from chat_app.conversation import erasure
from chat_app.models import Content, ContentPreview, ContentUse
from tests import factories

if TYPE_CHECKING:
    from pathlib import Path

    from django.contrib.auth.models import User
    from pytest_django.fixtures import Settings

RED, BLUE = (255, 0, 0), (0, 0, 255)
# 64 by 32 pixels of red, encoded by libheif.
HEIC: Final = base64.b64decode(
    "AAAAHGZ0eXBoZWljAAAAAG1pZjFoZWljbWlhZgAAAX1tZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAAAA"
    "AAAAAAAAACJpbG9jAAAAAERAAAEAAQAAAAABoQABAAAAAAAAAB4AAAAjaWluZgAAAAAAAQAAABVpbmZlAgAAAAABAABo"
    "dmMxAAAAAA5waXRtAAAAAAABAAAA/WlwcnAAAADdaXBjbwAAAHZodmNDAQNwAAAAkAAAAAAAHvAA/P34+AAADwNgAAEA"
    "GEABDAH//wNwAAADAJAAAAMAAAMAHroCQGEAAQAqQgEBA3AAAAMAkAAAAwAAAwAeoCCBBZbq5Ka5uAhoMCAAAAMDIAAA"
    "AwAhYgABAAZEAcFzwIkAAAATY29scm5jbHgAAQANAAaAAAAAFGlzcGUAAAAAAAAAQAAAAEAAAAAoY2xhcAAAAEAAAAAB"
    "AAAAIAAAAAEAAAAAAAAAAv///+AAAAACAAAAEHBpeGkAAAAAAwgICAAAABhpcG1hAAAAAAAAAAEAAQWBAgMFhAAAACZt"
    "ZGF0AAAAGigBrxOA+BDhp//8TSj/+nXPD9PMe/OikM+A"
)


def halves(mode: str = "RGB") -> Image.Image:
    """Return a picture that is blue on the left and red on the right."""
    picture = Image.new("RGB", (300, 200), "red")
    picture.paste("blue", (0, 0, 150, 200))
    return picture.convert(mode)


def file_of(picture: Image.Image, kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def photograph() -> Image.Exif:
    """Return metadata of a photograph that was taken with the camera on its side, at a place."""
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    exif[ExifTags.Base.Make] = "A camera"
    exif.get_ifd(ExifTags.IFD.GPSInfo)[ExifTags.GPS.GPSLatitudeRef] = "N"
    return exif


def exchanged() -> bytes:
    """Return the profile of sRGB with the colorants of red and blue exchanged (ICC.1, 7.3)."""
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    return profile.replace(b"rXYZ", b"____").replace(b"bXYZ", b"rXYZ").replace(b"____", b"bXYZ")


def preview(data: bytes, mime_type: str) -> Image.Image:
    """Return the preview that a child process draws."""
    image = draw(lambda: data, mime_type, asker="a")
    assert image
    return Image.open(io.BytesIO(image), formats=["WEBP"])


def is_near(picture: Image.Image, at: tuple[int, int], colour: tuple[int, int, int]) -> bool:
    pixel: Any = picture.convert("RGB").getpixel(at)
    return all(abs(value - expected) < 16 for value, expected in zip(pixel, colour, strict=True))


@pytest.mark.parametrize(
    ("data", "mime_type"),
    [
        (file_of(halves(), "TIFF"), "image/tiff"),
        (file_of(halves(), "TIFF", compression="tiff_lzw"), "image/tiff"),
        (file_of(halves("CMYK"), "TIFF"), "image/tiff"),
        (file_of(halves("P"), "TIFF"), "image/tiff"),
        (file_of(halves("RGBA"), "TIFF"), "image/tiff"),
        (
            file_of(
                halves(), "TIFF", save_all=True, append_images=[Image.new("RGB", (9, 9), "green")]
            ),
            "image/tiff",
        ),
        (file_of(halves(), "BMP"), "image/bmp"),
        (file_of(halves(), "JPEG2000"), "image/jp2"),
        (file_of(halves(), "AVIF"), "image/avif"),
    ],
)
def test_the_first_frame_is_drawn_in_its_colours(data: bytes, mime_type: str) -> None:
    image = preview(data, mime_type)
    assert image.size == (300, 200)
    assert is_near(image, (10, 100), BLUE)
    assert is_near(image, (290, 100), RED)


@pytest.mark.parametrize(("kind", "mime_type"), [("TIFF", "image/tiff"), ("AVIF", "image/avif")])
def test_it_is_upright_and_says_neither_place_nor_camera(kind: str, mime_type: str) -> None:
    data = file_of(halves(), kind, exif=photograph())
    image = preview(data, mime_type)
    assert image.size == (200, 300)
    assert is_near(image, (100, 10), BLUE)
    assert not image.getexif()
    assert not {"exif", "xmp", "icc_profile"} & image.info.keys()


def test_colours_of_a_profile_become_those_of_srgb() -> None:
    # Of a picture whose red and blue are exchanged by its profile, the preview shows the other.
    blue = Image.new("RGB", (20, 20), "blue")
    image = preview(file_of(blue, "TIFF", icc_profile=exchanged()), "image/tiff")
    assert is_near(image, (9, 9), RED)
    damaged = preview(file_of(blue, "TIFF", icc_profile=b"no profile"), "image/tiff")
    assert is_near(damaged, (9, 9), BLUE)


@pytest.mark.parametrize("mode", ["I;16", "I", "F"])
def test_deep_greys_are_scaled_to_what_a_screen_shows(mode: str) -> None:
    gradient = Image.linear_gradient("L").convert("I").point(lambda value: value * 16)
    image = preview(file_of(gradient.convert(mode), "TIFF"), "image/tiff")
    assert is_near(image, (128, 2), (2, 2, 2))
    assert is_near(image, (128, 253), (253, 253, 253))


def test_a_large_picture_has_a_small_preview() -> None:
    noise = Image.effect_noise((5_000, 3_000), 90)
    image = draw(partial(file_of, noise, "TIFF"), "image/tiff", asker="a")
    assert 0 < len(image) <= PREVIEW_BYTES
    assert Image.open(io.BytesIO(image)).size == (PREVIEW_PIXELS, PREVIEW_PIXELS * 3 // 5)


@pytest.mark.parametrize(
    ("data", "mime_type"),
    [
        # 81 megapixels in a few kilobytes.
        (
            file_of(Image.new("1", (9_000, 9_000)), "TIFF", compression="tiff_deflate"),
            "image/tiff",
        ),
        (
            b"BM" + struct.pack("<IHHI", 54, 0, 0, 54)
            + struct.pack("<IiiHHIIiiII", 40, 60_000, 60_000, 1, 24, 0, 0, 0, 0, 0, 0),
            "image/bmp",
        ),
        (file_of(halves(), "TIFF")[:5_000], "image/tiff"),
        (b"II*\0\xff\xff\xff\xff", "image/tiff"),
        # Another format under this one's name.
        (factories.png(), "image/tiff"),
    ],
)  # fmt: skip
def test_bombs_and_broken_files_have_none(data: bytes, mime_type: str) -> None:
    assert draw(lambda: data, mime_type, asker="a") == b""
    assert draw(partial(file_of, halves(), "TIFF"), "image/tiff", asker="a")


def test_heic_is_drawn_where_its_decoder_is_installed() -> None:
    image = draw(lambda: HEIC, "image/heic", asker="a")
    assert bool(image) == ("image/heic" in DRAWN_TYPES)
    if image:
        assert is_near(Image.open(io.BytesIO(image)), (30, 15), RED)


# --- Over HTTP ---


@pytest.fixture
def media(settings: Settings, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def scan(owner: User, data: bytes | None = None) -> Content:
    return factories.content(
        owner,
        file_of(halves(), "TIFF") if data is None else data,
        mime_type="image/tiff",
        filename="scan.tif",
    )


@pytest.mark.django_db
@pytest.mark.usefixtures("media")
def test_it_is_read_by_those_who_may_read_its_picture() -> None:
    ada, ben, eve = (factories.user(name) for name in ("ada", "ben", "eve"))
    content = scan(ada)
    chat = factories.chat(ada, ben)
    path = f"/api/content/{content.pk}/preview"
    assert signed_in(ben).get(path).status_code == 404
    ContentUse.objects.create(chat=chat, content=content)
    for person in (ada, ben):
        response = signed_in(person).get(path)
        assert response.status_code == 200
        assert response["Content-Type"] == "image/webp"
        assert response["X-Content-Type-Options"] == "nosniff"
        assert response["Content-Security-Policy"].startswith("sandbox")
        assert Image.open(io.BytesIO(response.content)).size == (300, 200)
    again = signed_in(ada).get(path, headers={"If-None-Match": response["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    wrong = signed_in(eve).get("/api/content/5f0c1d7e-0000-4000-8000-000000000001/preview")
    for client in (signed_in(eve), Client()):
        refused = client.get(path)
        assert refused.status_code == 404
        assert refused.json()["code"] == wrong.json()["code"]
    described = signed_in(ben).get(f"/api/v1/contents/{content.pk}").json()
    address, _, query = described["signed_url"].partition("?")
    assert Client().get(f"{address}/preview?{query}").status_code == 200
    erasure.leave(chat.pk, ben)
    assert signed_in(ben).get(path).status_code == 404
    assert Client().get(f"{address}/preview?{query}").status_code == 404


@pytest.mark.django_db
@pytest.mark.usefixtures("media")
def test_rendering_is_attempted_only_once_even_if_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    ada = factories.user("ada")
    intact, broken = scan(ada), scan(ada, file_of(halves(), "TIFF")[:5_000])
    assert previews.preview_of(intact)
    assert previews.preview_of(broken) == b""
    monkeypatch.setattr(previews, "draw", None)
    assert previews.preview_of(intact)
    assert previews.preview_of(broken) == b""
    assert signed_in(ada).get(f"/api/content/{broken.pk}/preview").status_code == 404
    assert previews.preview_of(factories.content(ada)) == b""


@pytest.mark.django_db
@pytest.mark.usefixtures("media")
def test_it_goes_with_its_picture() -> None:
    ada, ben = factories.user("ada"), factories.user("ben")
    picture_of_ben = scan(ben)
    for content in (scan(ada), picture_of_ben):
        assert previews.preview_of(content)
    erasure.erase_profile(ada.pk)
    assert list(ContentPreview.objects.values_list("content_id", flat=True)) == [picture_of_ben.pk]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("media")
def test_a_reader_who_waits_holds_neither_a_connection_nor_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = scan(factories.user("ada"))
    turns = drawing._processes._turns
    events: list[str] = []
    take_turn = turns.ask

    def wait(asker: str) -> Any:
        assert connection.connection is None
        events.append("wait")
        return take_turn(asker)

    def read_later(*arguments: Any) -> bytes:
        events.append("read")
        return storage.read(*arguments)

    monkeypatch.setattr(turns, "ask", wait)
    monkeypatch.setattr(previews, "read", read_later)
    connection.ensure_connection()
    # As in a pool, the connection may be released.
    connection.close_at = 0.0
    assert previews.preview_of(content)
    assert events == ["wait", "read"]


@pytest.mark.django_db
@pytest.mark.usefixtures("media")
def test_a_picture_without_a_file_has_none_and_takes_no_process() -> None:
    content = scan(factories.user("ada"))
    content.blob.delete(save=False)
    content.blob.name = "gone"
    assert previews.preview_of(content) == b""
    assert drawing._processes.free == PROCESSES


@pytest.mark.django_db
@pytest.mark.usefixtures("media")
def test_readers_request_so_many_previews_and_no_more(settings: Settings) -> None:
    ada = factories.user("ada")
    settings.UAMP_RENDERS_PER_MINUTE = 1
    client = signed_in(ada)
    first, second = (f"/api/content/{scan(ada).pk}/preview" for _ in range(2))
    # A stored preview takes no process, and neither does a file that has none.
    paths = [first, first, second, f"/api/content/{factories.content(ada).pk}/preview"]
    assert [client.get(path).status_code for path in paths] == [200, 200, 429, 404]


@pytest.mark.django_db
@pytest.mark.usefixtures("media")
def test_a_reader_does_not_wait_while_many_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    ada = factories.user("ada")
    content = scan(ada)
    monkeypatch.setattr(drawing._processes, "ask", _none_free)
    refused = signed_in(ada).get(f"/api/content/{content.pk}/preview")
    assert (refused.status_code, refused.json()["code"]) == (503, "unavailable")
    assert not ContentPreview.objects.exists()


def _none_free(*_: object, **__: object) -> bytes:
    raise NoneFree
