"""The size of contents as a model counts it: an upper bound, measured once from the bytes.

The unit is milliseconds of sound, pages of a PDF, tiles of a picture, tokens of a text. Prices are
based on it (sessions_app/billing/weights.py). Synchronous: never call it on the event loop.
"""

from __future__ import annotations

import math
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from django.db.models import Q
from PIL import Image, UnidentifiedImageError

from agents_app.conversation.history import DOCUMENT_CHARS, document_text
from agents_app.conversation.text_weights import CHARS_PER_TOKEN, max_weight
from agents_app.workers import connections
from chat_app.contents.measures import UNMEASURED, MeasuringBusy, measure
from chat_app.contents.media_types import IMAGE_FORMATS, IMAGE_MAX_PIXELS, PILLOW_FORMATS
from chat_app.contents.pictures import open_picture
from chat_app.models import Content

if TYPE_CHECKING:
    from collections.abc import Iterable

TILE: Final = 768
"""The longest side of a tile, in pixels; long, narrow pictures have smaller tiles."""
MIN_TILE: Final = 256
_CHAR_BYTES: Final = 4
_MAX_TILES: Final = IMAGE_MAX_PIXELS // MIN_TILE**2


@dataclass(frozen=True, slots=True)
class Extent:
    """The size of a content: `amount` is in the unit of its kind."""

    kind: Literal["sound", "pdf", "picture", "other"]
    amount: int
    size_bytes: int

    @property
    def is_bounded(self) -> bool:
        """Whether it is known how much of it a model counts at most."""
        return self.amount < UNMEASURED


def kind_of(mime_type: str) -> Literal["sound", "pdf", "picture", "other"]:
    """Return the kind of model input for a MIME type."""
    if mime_type == "application/pdf":
        return "pdf"
    if mime_type.startswith("audio/"):
        return "sound"
    # Models see no other pictures, and their decoders may need gigabytes for the header alone.
    return "picture" if mime_type in IMAGE_FORMATS.values() else "other"


def extent_of(data: bytes, mime_type: str, *, asker: str) -> int | None:
    """Return an upper bound of `Extent.amount` for a content; 0 for kinds that are not measured.

    UNMEASURED if no bound can be read, and None while too many files are being measured. Files of
    one `asker` are measured one after another.
    """
    match kind_of(mime_type):
        case "sound" | "pdf":
            try:
                return measure(data, mime_type, asker=asker)
            except MeasuringBusy:
                return None
        case "picture":
            return _most_tiles(data, mime_type)
    is_text = mime_type.startswith("text/") or mime_type == "application/json"
    return _text_tokens(data) if is_text else 0


def _text_tokens(data: bytes) -> int:
    """Return the most tokens that a model is expected to count for a text."""
    text = document_text(data[: _CHAR_BYTES * DOCUMENT_CHARS])[:DOCUMENT_CHARS]
    return math.ceil(max_weight(text) / CHARS_PER_TOKEN)


def _most_tiles(data: bytes, mime_type: str) -> int:
    try:
        with open_picture(data, formats=PILLOW_FORMATS[mime_type]) as image:
            width, height = image.size
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError, ValueError):
        return _MAX_TILES
    side = min(max(int(min(width, height) / 1.5), MIN_TILE), TILE)
    return min(-(-width // side) * -(-height // side), _MAX_TILES)


class NotMeasured(Exception):
    """A content has no extent yet."""


def extents_of(
    content_ids: Iterable[str], *, may_measure: bool = True
) -> dict[str, tuple[Extent, ...]]:
    """Return the extents of contents by the ids and handles that name them.

    A handle may name several, of different owners. Contents that were not measured when they were
    stored are measured now, and the result is stored, or without `may_measure` NotMeasured is
    raised. Raises MeasuringBusy.
    """
    named = {text: key for text in content_ids if (key := _uuid(text)) is not None}
    keys = set(named.values())
    by_key: dict[uuid.UUID, list[Extent]] = {}
    for content in Content.objects.filter(Q(pk__in=keys) | Q(handle__in=keys)):
        if content.extent is None and not may_measure:
            raise NotMeasured
        extent = Extent(kind_of(content.mime_type), _amount_of(content), content.size_bytes)
        for key in keys & {content.pk, content.handle or content.pk}:
            by_key.setdefault(key, []).append(extent)
    return {
        text: tuple(by_key[named_key]) for text, named_key in named.items() if named_key in by_key
    }


def _amount_of(content: Content) -> int:
    if content.extent is None:
        try:
            with content.blob.open("rb") as blob:
                data: bytes = blob.read()
        except FileNotFoundError:
            # Models do not get the content either.
            return 0
        asker = content.owner_key or str(content.owner_id)
        # Others may need the connection while this thread waits for a process.
        connections.release()
        content.extent = extent_of(data, content.mime_type, asker=asker)
        if content.extent is None:
            raise MeasuringBusy
        Content.objects.filter(pk=content.pk).update(extent=content.extent)
    return content.extent


def _uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
