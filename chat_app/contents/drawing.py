"""Drawing previews of pictures in a few child processes, with limits on time, memory and pixels.

For types that browsers do not show. The preview is upright, in sRGB, and has no metadata of its
original: no place, no camera, no second frame. The module is what the processes run; it imports
neither Django nor the models.
"""

from __future__ import annotations

import importlib
import io
import math
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, cast

from PIL import ExifTags, Image, ImageCms, ImageOps

from agents_app.workers.child_limits import CpuTimeError, cpu_limit, limit_memory
from agents_app.workers.child_processes import ChildProcesses, NoneFree, TooSlow, serve
from chat_app.contents.media_types import IMAGE_MAX_PIXELS

if TYPE_CHECKING:
    from collections.abc import Callable

PREVIEW_MIME: Final = "image/webp"
PREVIEW_PIXELS: Final = 1_600
"""The longest side of a preview."""
PREVIEW_BYTES: Final = 512 * 1024
CPU_SECONDS: Final = 10.0
"""The processor time that a picture may take."""
DRAW_SECONDS: Final = 30.0
"""How long a process is waited for, which shares its processor with others."""
WAIT_SECONDS: Final = 10.0
"""How long a picture waits for a free process."""
_MEMORY_BYTES: Final = 1024 * 1024 * 1024
_QUALITIES: Final = (82, 60, 35)
_HEIF_PLUGIN: Final = "pi_heif"
_HAS_HEIF: Final = find_spec(_HEIF_PLUGIN) is not None
_FORMATS: Final = {
    "image/avif": ("AVIF",),
    "image/bmp": ("BMP",),
    "image/jp2": ("JPEG2000",),
    "image/tiff": ("TIFF",),
    **({"image/heic": ("HEIF",), "image/heif": ("HEIF",)} if _HAS_HEIF else {}),
}
DRAWN_TYPES: Final = frozenset(_FORMATS)
"""The types of pictures that have a preview; HEIC is one if the extra `heic` is installed."""
_DEEP_MODES: Final = ("I", "F")
_processes: Final = ChildProcesses("chat_app.contents.drawing")


class DrawingBusy(Exception):
    """No process became free in time; the preview can be drawn later."""


def draw(read: Callable[[], bytes], mime_type: str, *, asker: str) -> bytes:
    """Return the preview of a picture as WebP; empty if it cannot be drawn within the limits.

    `read` returns the picture, and is called while a process is reserved. Pictures of one asker are
    drawn one after another. Raises DrawingBusy. Blocks for at most WAIT_SECONDS plus DRAW_SECONDS,
    and as long as `read` does: reading from a bucket may time out and be tried again (`bucket`).
    """

    def request() -> bytes:
        return mime_type.encode() + b"\0" + read()

    try:
        return _processes.ask(request, asker=asker, seconds=DRAW_SECONDS, wait=WAIT_SECONDS)
    except NoneFree:
        raise DrawingBusy from None
    except TooSlow:
        return b""


def draw_here(data: bytes, mime_type: str) -> bytes:
    """Do the work of `draw`, without limits on time and memory.

    Raises what Pillow does for a picture that it cannot read, and ValueError for too many pixels.
    """
    if mime_type.startswith("image/hei"):
        importlib.import_module(_HEIF_PLUGIN).register_heif_opener()
    with Image.open(io.BytesIO(data), formats=_FORMATS[mime_type]) as image:
        if image.width * image.height > IMAGE_MAX_PIXELS:
            raise ValueError("too many pixels")
        image.load()
        profile, turn = image.info.get("icc_profile"), _orientation(image)
        # Nearly to its size first: what follows copies the picture.
        times = max(1, max(image.size) // (2 * PREVIEW_PIXELS))
        small = _plain(image).reduce(times)
    small.info = {}
    small = _in_srgb(small, profile)
    small.thumbnail((PREVIEW_PIXELS, PREVIEW_PIXELS), Image.Resampling.LANCZOS)
    small.getexif()[ExifTags.Base.Orientation] = turn
    return _encoded(ImageOps.exif_transpose(small))


def _orientation(image: Image.Image) -> int:
    turn = image.getexif().get(ExifTags.Base.Orientation, 1)
    return turn if isinstance(turn, int) else 1


def _plain(image: Image.Image) -> Image.Image:
    """Return a picture in a mode that can be averaged; the range of deep greys becomes 0 to 255."""
    if image.mode.startswith("I;16"):
        image = image.convert("I")
    if image.mode in _DEEP_MODES:
        least, most = (cast("float", value) for value in image.getextrema())
        if not (math.isfinite(least) and math.isfinite(most)):
            raise ValueError("no range of greys")
        scale = 255 / (most - least) if most > least else 0.0
        return image.point(lambda value: value * scale - least * scale).convert("L")
    if image.mode in {"L", "RGB", "RGBA", "CMYK", "LAB"}:
        return image
    if image.mode == "1":
        return image.convert("L")
    return image.convert("RGBA" if image.has_transparency_data else "RGB")


def _in_srgb(image: Image.Image, profile: bytes | None) -> Image.Image:
    """Return a picture as RGB or RGBA, its colours converted from its profile, if that is valid."""
    alpha = image.getchannel("A") if image.mode == "RGBA" else None
    colours = image.convert("RGB") if alpha is not None else image
    try:
        if profile:
            source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            target = ImageCms.createProfile("sRGB")
            converted = ImageCms.profileToProfile(colours, source, target, outputMode="RGB")
            colours = converted or colours
    except (ImageCms.PyCMSError, OSError, ValueError):
        pass  # a profile of another colour space, or none that can be read
    if colours.mode == "LAB":
        lab, srgb = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
        colours = ImageCms.profileToProfile(colours, lab, srgb, outputMode="RGB") or colours
    colours = colours.convert("RGB")
    colours.info = {}
    if alpha is not None:
        colours.putalpha(alpha)
    return colours


def _encoded(image: Image.Image) -> bytes:
    """Return a picture as WebP of at most PREVIEW_BYTES; empty if it is larger at any quality."""
    image.info = {}
    for quality in _QUALITIES:
        file = io.BytesIO()
        image.save(file, "WEBP", quality=quality)
        if file.tell() <= PREVIEW_BYTES:
            return file.getvalue()
    return b""


def _drawn(request: bytes) -> bytes:
    mime_type, _, data = request.partition(b"\0")
    try:
        with cpu_limit(CPU_SECONDS):
            return draw_here(data, mime_type.decode())
    except (CpuTimeError, Exception):  # noqa: BLE001 decoders raise anything for bad bytes
        return b""


if __name__ == "__main__":
    limit_memory(_MEMORY_BYTES)
    serve(_drawn, sys.stdin.buffer, sys.stdout.buffer)
