"""The tool `edit_picture`: edits a picture from the chat and answers with a new one.

The original picture is not changed. Large pictures are processed in bands, so that progress is
reported and the call can be cancelled between them.
"""

import io
from collections.abc import Callable
from typing import Annotated, Literal

import msgspec
from PIL import Image, ImageDraw, ImageFont, ImageOps, ImageStat, UnidentifiedImageError

from agents_app.tools.registry import ReadContent, ToolContext, ToolError, ToolOutcome, tool
from uamp.types.content import ImageContent

_BAND_PIXELS = 500_000
_MAX_PIXELS = 50_000_000
_SMALLEST_LETTERS = 6
_SAVED_AS = {"JPEG": ("image/jpeg", "jpg"), "WEBP": ("image/webp", "webp")}
# Readers treat an MPO, a file of several pictures written by phones, as a JPEG.
# Other decoders of Pillow start programs.
_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")
_READ_AS = {"MPO": "JPEG"}
_TURNS = {
    90: Image.Transpose.ROTATE_270,
    180: Image.Transpose.ROTATE_180,
    270: Image.Transpose.ROTATE_90,
}

_Change = Callable[[Image.Image], Image.Image]


@tool
def edit_picture(
    context: ToolContext,
    content_id: Annotated[str, msgspec.Meta(description="content_id of the picture", min_length=1)],
    *,
    rotate: Annotated[
        Literal[0, 90, 180, 270], msgspec.Meta(description="Degrees, clockwise.")
    ] = 0,
    thumbnail: Annotated[
        int, msgspec.Meta(ge=16, le=4096, description="Longest side of the new one, in pixels.")
    ]
    | None = None,
    grayscale: Annotated[bool, msgspec.Meta(description="Black and white.")] = False,
    contrast: Annotated[
        float, msgspec.Meta(ge=0, le=4, description="1 changes nothing, more is stronger.")
    ]
    | None = None,
    caption: Annotated[
        str, msgspec.Meta(min_length=1, max_length=120, description="Words to write below it.")
    ]
    | None = None,
) -> ToolOutcome:
    """Make a new picture of one in the chat: turned, smaller, grey, with contrast or a caption."""
    work = _Work(context)
    work.report("read", "Reading the picture", percent=0)
    content = context.read_content(content_id)
    picture, kind = _opened(content)
    if rotate:
        work.add("rotate", f"turned by {rotate}°", lambda p: p.transpose(_TURNS[rotate]))
    if thumbnail is not None:
        work.add("resize", f"at most {thumbnail} pixels wide and high", _smaller(thumbnail))
    if grayscale:
        work.add("grayscale", "black and white", work.in_bands(_grey))
    if contrast is not None:
        work.add("contrast", f"contrast {contrast:g}", work.in_bands(_contrasted(contrast)))
    if caption is not None:
        work.add("caption", f"captioned “{caption}”", lambda p: _captioned(p, caption))
    if not work.changes:
        raise ToolError(
            "No edit was requested. Set at least one of rotate, thumbnail, grayscale, contrast and"
            " caption."
        )
    picture = work.run(picture)
    work.report("write", "Storing the new picture", percent=90)
    mime_type, ending = _SAVED_AS.get(kind, ("image/png", "png"))
    name = content.filename.rsplit(".", 1)[0] or "picture"
    item = context.write_content(
        _saved(picture, kind), mime_type=mime_type, filename=f"{name}-edited.{ending}"
    )
    done = ", ".join(description for _, description, _ in work.changes)
    size = f"{picture.width} by {picture.height} pixels"
    if isinstance(item, ImageContent):
        shows = f"{content.filename or 'The picture'}, {done}"
        item = msgspec.structs.replace(item, alt_text=shows, description=shows)
    work.report("done", "Done", percent=100)
    return ToolOutcome(result=f"The new picture is {done}; {size}.", content_items=(item,))


class _Work:
    """The changes to one picture and their progress, from 10 to 90 percent."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._stage, self._description, self._step = "", "", 0
        self.changes: list[tuple[str, str, _Change]] = []

    def add(self, stage: str, description: str, change: _Change) -> None:
        """Add a change; `description` describes the picture after it."""
        self.changes.append((stage, description, change))

    def run(self, picture: Image.Image) -> Image.Image:
        """Apply all changes to the picture, reporting each as it begins."""
        for step, (stage, description, change) in enumerate(self.changes, start=1):
            self._step, self._stage, self._description = step, stage, description
            self._part(0)
            picture = change(picture)
        return picture

    def in_bands(self, prepare: Callable[[Image.Image], _Change]) -> _Change:
        """Apply a size-preserving change to a large picture band by band.

        `prepare` receives the whole picture and returns the change for each band.
        """

        def run(picture: Image.Image) -> Image.Image:
            change = prepare(picture)
            rows = max(1, _BAND_PIXELS // picture.width)
            bands = []
            for top in range(0, picture.height, rows):
                self._part(top / picture.height)
                bottom = min(top + rows, picture.height)
                bands.append(change(picture.crop((0, top, picture.width, bottom))))
            changed = Image.new(bands[0].mode, picture.size)
            for number, band in enumerate(bands):
                changed.paste(band, (0, number * rows))
            return changed

        return run

    def report(self, stage: str, message: str, *, percent: float) -> None:
        """Report progress; raises ToolCancelled."""
        self._context.progress(
            percent=percent,
            step=self._step,
            total_steps=len(self.changes) or None,
            stage=stage,
            message=message,
        )

    def _part(self, share: float) -> None:
        done = (self._step - 1 + share) / len(self.changes)
        message = f"{self._description[0].upper()}{self._description[1:]}"
        self.report(self._stage, message, percent=10 + 80 * done)


def _opened(content: ReadContent) -> tuple[Image.Image, str]:
    """Return the picture, upright and in a mode that all changes support, and its file format."""
    message = f"{content.filename or 'The content'} is not a readable picture."
    try:
        with Image.open(io.BytesIO(content.data), formats=_FORMATS) as picture:
            if picture.width * picture.height > _MAX_PIXELS:
                raise ToolError("The picture has more than 50 megapixels.")
            kind = _READ_AS.get(picture.format or "", picture.format or "")
            upright = ImageOps.exif_transpose(picture)
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError) as error:
        raise ToolError(message) from error
    has_alpha = "A" in upright.getbands() or "transparency" in upright.info
    return upright.convert("RGBA" if has_alpha else "RGB"), kind


def _smaller(side: int) -> _Change:
    def change(picture: Image.Image) -> Image.Image:
        picture.thumbnail((side, side), Image.Resampling.LANCZOS)
        return picture

    return change


def _grey(_picture: Image.Image) -> _Change:
    return lambda band: band.convert("LA" if band.mode == "RGBA" else "L").convert(band.mode)


def _contrasted(factor: float) -> Callable[[Image.Image], _Change]:
    """Return a change that moves every colour away from or towards the picture's mean grey."""

    def prepare(picture: Image.Image) -> _Change:
        mean = ImageStat.Stat(picture.convert("L")).mean[0]
        levels = [min(255, max(0, round(mean + factor * (v - mean)))) for v in range(256)]
        # Transparency is unchanged.
        tables = levels * 3 + (list(range(256)) if picture.mode == "RGBA" else [])
        return lambda band: band.point(tables)

    return prepare


def _captioned(picture: Image.Image, words: str) -> Image.Image:
    """Return the picture with a caption below it, in letters that fit its width."""
    size = max(8, min(picture.height // 12, 96))
    font = ImageFont.load_default(size)
    while size > _SMALLEST_LETTERS and font.getlength(words) > picture.width * 0.94:
        size -= 1
        font = ImageFont.load_default(size)
    line = round(size * 1.8)
    framed = Image.new(picture.mode, (picture.width, picture.height + line), "white")
    framed.paste(picture, (0, 0))
    ImageDraw.Draw(framed).text(
        (picture.width / 2, picture.height + line / 2), words, fill="black", font=font, anchor="mm"
    )
    return framed


def _saved(picture: Image.Image, kind: str) -> bytes:
    buffer = io.BytesIO()
    # The metadata of the original file (place, camera) is not copied.
    if kind == "JPEG":
        picture.convert("RGB").save(buffer, "JPEG", quality=90)
    elif kind == "WEBP":
        picture.save(buffer, "WEBP", quality=90)
    else:
        picture.save(buffer, "PNG")
    return buffer.getvalue()
