"""Opening pictures with Pillow, which reads their headers in Python, part by part.

A file of 26 MB may have millions of parts before its pixels, or the metadata in thousands of
pieces that Pillow joins one by one. The number of reads is therefore limited.
"""

from __future__ import annotations

import io
from typing import Final

from PIL import Image

JPEG_READS: Final = 4096
"""The limit for a JPEG: four reads for each segment. A long profile has 255 segments."""
READS: Final = 100_000
"""The most reads of any other picture: a PNG of 26 MB has about 3,000 chunks."""
EXIF_PIECES: Final = 100
"""The limit on pieces of Exif data: Pillow copies all earlier pieces to append one."""
_JPEG_START: Final = b"\xff\xd8"
_EXIF_START: Final = b"Exif\0\0"
_REFUSED: Final = "The picture has too many parts."


class TooManyParts(OSError):
    """The file of a picture has more parts than any camera or program writes."""


class _LimitedReads(io.BytesIO):
    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        is_jpeg = data.startswith(_JPEG_START)
        if is_jpeg and data.count(_EXIF_START) > EXIF_PIECES:
            raise TooManyParts(_REFUSED)
        self._left = JPEG_READS if is_jpeg else READS

    def read(self, size: int | None = -1, /) -> bytes:
        self._left -= 1
        if self._left < 0:
            raise TooManyParts(_REFUSED)
        return super().read(size)


def open_picture(data: bytes, *, formats: tuple[str, ...]) -> Image.Image:
    """Open a picture in one of these formats; raises what Pillow does, or TooManyParts."""
    return Image.open(_LimitedReads(data), formats=formats)
