"""Pictures of people: an upload becomes a small square that the server re-encodes.

Nothing of the file itself is stored or served: no metadata, no second frame, no trailing bytes.
"""

from __future__ import annotations

import hashlib
import io
from typing import Final, NamedTuple

from django.conf import settings
from PIL import Image, ImageOps, UnidentifiedImageError

from chat_app.contents.pictures import open_picture

PICTURE_MIME: Final = "image/webp"
PICTURE_PIXELS: Final = 256
"""Width and height of the stored picture."""
SOURCE_PIXELS_MAX: Final = 30_000_000
DECODED_PIXELS_MAX: Final = 16_000_000
"""The most pixels held in memory; a JPEG is decoded at a fraction of its size."""
_FORMATS: Final = ("PNG", "JPEG", "WEBP", "GIF")
_QUALITY: Final = 82


class InvalidPicture(ValueError):
    """The file cannot be used as a person's picture; the message is for them."""


class Square(NamedTuple):
    """A picture in its stored form, and the version for its address."""

    data: bytes
    version: str


def square_of(data: bytes) -> Square:
    """Return the middle of a picture as a square of PICTURE_PIXELS. Raises InvalidPicture.

    The bytes alone decide its type, not a name or a declared type.
    """
    if len(data) > settings.UAMP_PICTURE_BYTES:
        raise InvalidPicture(f"The picture is larger than {settings.UAMP_PICTURE_BYTES} bytes.")
    try:
        with open_picture(data, formats=_FORMATS) as image:
            if image.width * image.height > SOURCE_PIXELS_MAX:
                raise InvalidPicture("The picture has more than 30 megapixels.")
            # A photograph is decoded at a fraction of its size.
            image.draft("RGB", (2 * PICTURE_PIXELS, 2 * PICTURE_PIXELS))
            if image.width * image.height > DECODED_PIXELS_MAX:
                raise InvalidPicture("A picture other than a JPEG may have at most 16 megapixels.")
            mode = "RGBA" if image.has_transparency_data else "RGB"
            # Averaged before rotating and fitting, each of which copies the picture.
            times = max(1, min(image.size) // (2 * PICTURE_PIXELS))
            reduced = image.convert(mode).reduce(times)
            small = ImageOps.fit(
                ImageOps.exif_transpose(reduced),
                (PICTURE_PIXELS, PICTURE_PIXELS),
                Image.Resampling.LANCZOS,
            )
    except (UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise InvalidPicture("A picture must be a PNG, JPEG, WebP or GIF file.") from error
    except (OSError, SyntaxError, ValueError) as error:
        if isinstance(error, InvalidPicture):
            raise
        raise InvalidPicture("The picture cannot be read: its file is incomplete.") from error
    encoded = io.BytesIO()
    small.save(encoded, "WEBP", quality=_QUALITY)
    stored = encoded.getvalue()
    return Square(stored, hashlib.sha256(stored).hexdigest()[:16])
