"""The tool edit_picture: real pictures in, real pictures out."""

import io
import re
from typing import Any

import pytest
from PIL import Image

from agents_app.tools import edit_picture as module
from agents_app.tools.edit_picture import edit_picture
from agents_app.tools.registry import ToolCancelled, ToolError, ToolOutcome
from tests.agents_app.run_context import CSV_ID, Context
from uamp.types.content import ImageContent

RED, BLUE = (200, 30, 30), (30, 30, 200)


def picture(width: int = 40, height: int = 20, *, kind: str = "PNG", mode: str = "RGB") -> bytes:
    """Return a picture whose left half is red and whose right half is blue."""
    image = Image.new("RGB", (width, height), RED)
    image.paste(BLUE, (width // 2, 0, width, height))
    buffer = io.BytesIO()
    image.convert(mode).save(buffer, kind)
    return buffer.getvalue()


def edited(data: bytes, **arguments: Any) -> tuple[Image.Image, ToolOutcome, Context]:
    """Run the tool and return the picture that it wrote, its result and its progress."""
    context = Context(data=data, filename="holiday.png")
    outcome = edit_picture.run(context, {"content_id": CSV_ID, **arguments})
    assert not outcome.is_error, outcome.result
    ((picture_bytes, _, _),) = context.written
    return Image.open(io.BytesIO(picture_bytes)), outcome, context


def test_black_and_white_has_no_colour_left() -> None:
    new, outcome, context = edited(picture(), grayscale=True)
    assert new.size == (40, 20)
    red, green, blue = (band.tobytes() for band in new.convert("RGB").split())
    assert red == green == blue
    assert outcome.result == "The new picture is black and white; 40 by 20 pixels."
    assert [(mime, name) for _, mime, name in context.written] == [
        ("image/png", "holiday-edited.png")
    ]
    (item,) = outcome.content_items
    assert isinstance(item, ImageContent)
    assert item.alt_text == item.description == "holiday.png, black and white"


def test_a_turn_is_clockwise() -> None:
    new, _, _ = edited(picture(), rotate=90)
    assert new.size == (20, 40)
    # What was left is on top.
    assert new.convert("RGB").getpixel((10, 5)) == RED
    assert new.convert("RGB").getpixel((10, 35)) == BLUE


def test_a_thumbnail_keeps_the_shape() -> None:
    new, _, _ = edited(picture(400, 200), thumbnail=100)
    assert new.size == (100, 50)


def test_contrast_moves_colours_from_their_mean() -> None:
    weak = edited(picture(), contrast=0.5)[0].convert("RGB")
    strong = edited(picture(), contrast=2)[0].convert("RGB")
    reds = [image.getpixel((5, 5))[0] for image in (weak, strong)]  # type: ignore[index]  # RGB
    assert reds[0] < RED[0] < reds[1]


def test_a_caption_is_drawn_below_the_picture() -> None:
    new, outcome, _ = edited(picture(200, 100), caption="Rome, 2024")
    assert new.width == 200
    assert new.height > 100
    below = new.convert("L").crop((0, 100, new.width, new.height))
    # Dark letters on white; without words there is one shade only.
    assert below.getextrema()[1] == 255
    assert len(below.getcolors() or []) > 5
    assert "captioned “Rome, 2024”" in outcome.result


def test_several_changes_are_reported_in_their_order() -> None:
    _, outcome, context = edited(picture(400, 200), rotate=180, thumbnail=64, grayscale=True)
    reported = [(t["stage"], t["step"], t["total_steps"]) for t in context.reported]
    stages = list(dict.fromkeys(reported))
    assert stages == [
        ("read", 0, None),
        ("rotate", 1, 3),
        ("resize", 2, 3),
        ("grayscale", 3, 3),
        ("write", 3, 3),
        ("done", 3, 3),
    ]
    percents = [t["percent"] for t in context.reported]
    assert percents == sorted(percents)
    assert percents[-1] == 100
    assert outcome.result.startswith("The new picture is turned by 180°, at most 64 pixels")


def test_a_large_picture_is_reported_band_by_band(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BAND_PIXELS", 1000)
    in_bands, _, context = edited(picture(100, 95), grayscale=True, contrast=1.5)
    parts = [t["percent"] for t in context.reported if t["stage"] == "grayscale"]
    assert len(parts) == 11
    monkeypatch.setattr(module, "_BAND_PIXELS", 1_000_000)
    at_once, _, _ = edited(picture(100, 95), grayscale=True, contrast=1.5)
    assert in_bands.tobytes() == at_once.tobytes()


def test_it_can_be_cancelled_before_each_change() -> None:
    context = Context(data=picture(), cancel_at="contrast")
    with pytest.raises(ToolCancelled):
        edit_picture.run(context, {"content_id": CSV_ID, "grayscale": True, "contrast": 2})
    assert context.written == []


@pytest.mark.parametrize(("kind", "mime_type"), [("JPEG", "image/jpeg"), ("WEBP", "image/webp")])
def test_a_photo_stays_one(kind: str, mime_type: str) -> None:
    new, _, context = edited(picture(kind=kind), grayscale=True)
    assert new.format == kind
    assert context.written[0][1] == mime_type


def test_what_is_transparent_stays_so() -> None:
    image = Image.new("RGBA", (10, 10), (200, 30, 30, 40))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    new, _, _ = edited(buffer.getvalue(), grayscale=True, contrast=2)
    assert new.mode == "RGBA"
    assert new.getpixel((5, 5))[3] == 40  # type: ignore[index]  # RGBA


def test_a_photo_is_turned_upright_and_forgets_where_it_was_taken() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees
    exif[0x010F] = "Camera"
    buffer = io.BytesIO()
    Image.open(io.BytesIO(picture())).save(buffer, "JPEG", exif=exif)
    new, _, _ = edited(buffer.getvalue(), contrast=1.1)
    assert new.size == (20, 40)
    assert not new.getexif()


@pytest.mark.parametrize("data", [b"", b"name,age\n", picture()[:40], b"<svg xmlns=''/>"])
def test_a_file_that_is_not_a_picture_is_refused(data: bytes) -> None:
    context = Context(data=data, filename="notes.csv")
    with pytest.raises(ToolError, match=r"notes\.csv is not a readable picture"):
        edit_picture.run(context, {"content_id": CSV_ID, "grayscale": True})


def test_a_picture_with_too_many_pixels_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_PIXELS", 799)
    with pytest.raises(ToolError, match="megapixels"):
        edited(picture(), grayscale=True)


def test_a_request_without_changes_is_reported() -> None:
    with pytest.raises(ToolError, match="No edit was requested"):
        edited(picture())


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"rotate": 45}, r"\$\.rotate"),
        ({"thumbnail": 5}, r"\$\.thumbnail"),
        ({"contrast": 9}, r"\$\.contrast"),
        ({"caption": ""}, r"\$\.caption"),
        ({"sepia": True}, "sepia"),
    ],
)
def test_arguments_that_do_not_fit_are_reported(arguments: dict[str, Any], problem: str) -> None:
    context = Context(data=picture())
    outcome = edit_picture.run(context, {"content_id": CSV_ID, **arguments})
    assert outcome.is_error
    assert outcome.result.startswith("edit_picture was not run.")
    assert re.search(problem, outcome.result)
