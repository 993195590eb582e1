"""Token estimates for media, by vendor: the most that a model may count, and the usual number.

Reservations use the maximum. Vendors count sound by its length, PDFs by page and pictures by tile.
An interrupted step is charged the usual number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import uamp
from agents_app.providers.options import audio_formats
from chat_app.contents.extents import NotMeasured, extents_of
from chat_app.contents.measures import MeasuringBusy
from sessions_app import database
from uamp import ErrorCode, RemoteProtocolError
from uamp.types.content import content_id_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agents_app.selectors import AgentSpec
    from chat_app.contents.extents import Extent

BUSY_SECONDS: Final = 5
MEDIUM_TOKENS: Final = 1_600
"""An estimate for a picture or sound of unknown extent."""
_WITHOUT_SOUND: Final = {"anthropic", "openai_compat"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Tokens per second of sound, per PDF page and per picture tile."""

    second: int
    page: int
    tile: int
    max_of_picture: int | None = None


USUAL: Final = Rates(second=32, page=1_500, tile=258, max_of_picture=MEDIUM_TOKENS)
# Llama models count up to 6,404 for a picture of one tile, other servers less.
_HIGHEST: Final = Rates(second=50, page=4_600, tile=6_404, max_of_picture=16_384)
# 2,833 for a picture and 5,667 for each tile of 512 pixels. A page is sent as a picture, too.
_MAX_OF_4O_MINI: Final = Rates(second=50, page=30_200, tile=25_501, max_of_picture=48_169)
_MAX_OF_VENDORS: Final = {
    "anthropic": Rates(second=50, page=4_600, tile=800, max_of_picture=4_800),
    "google": Rates(second=32, page=3_000, tile=258),
    "openai_realtime": Rates(second=20, page=4_600, tile=800, max_of_picture=16_384),
}


def max_rates(spec: AgentSpec) -> Rates:
    """Return the most that an agent's model may count."""
    if "4o-mini" in spec.model and spec.provider == "openai_compat":
        return _MAX_OF_4O_MINI
    return _MAX_OF_VENDORS.get(spec.provider, _HIGHEST)


def ids_of(item: uamp.ContentItem) -> list[str]:
    """Return the ids by which an item may refer to a stored content; only one of them is read."""
    medium = uamp.media_of(item)
    ids = [getattr(item, "content_id", None)]
    if isinstance(medium, uamp.MediaUrl):
        ids.append(content_id_of(medium.url))
    return [content_id for content_id in ids if content_id]


def media_ids(history: Sequence[uamp.Message]) -> list[str]:
    """Return the ids of all stored contents that a request's messages may refer to."""
    return [
        content_id
        for message in history
        for item in message.content_items or ()
        if isinstance(item, uamp.MediaContent)
        for content_id in ids_of(item)
    ]


async def read_extents(ids: Sequence[str], asker: str) -> dict[str, tuple[Extent, ...]]:
    """Return the extents of contents by id, measured now if need be.

    Raises RemoteProtocolError busy.
    """
    try:
        return await database.run(extents_of, ids, may_measure=False)
    except NotMeasured:
        pass  # rare: only contents that were stored while measuring was busy
    try:
        return await database.run_long(asker, extents_of, ids)
    except MeasuringBusy:
        raise RemoteProtocolError(
            ErrorCode.BUSY,
            "Too many files are being measured. Try again in a moment.",
            details={"retry_after": BUSY_SECONDS},
        ) from None


def check_measured(
    spec: AgentSpec,
    items: Sequence[uamp.ContentItem],
    extents: Mapping[str, Sequence[Extent]],
) -> None:
    """Refuse the items of a message if one has a price, but no bound that can be reserved.

    Raises RemoteProtocolError unsupported_modality. The file of an earlier message is withheld from
    the model instead.
    """
    for item in items:
        of_item = [extent for name in ids_of(item) for extent in extents.get(name, ())]
        if all(extent.is_bounded for extent in of_item) or not _reads(spec, item):
            continue
        raise RemoteProtocolError(
            ErrorCode.UNSUPPORTED_MODALITY,
            f"{spec.name} charges by the length of a file, and the length of this one cannot be"
            " determined. Send it in another format, such as MP3 or WAV for audio.",
            details={"modality": "audio" if isinstance(item, uamp.AudioContent) else "file"},
        )


def _reads(spec: AgentSpec, item: uamp.ContentItem) -> bool:
    """Return whether an agent's model receives more of a medium than its name."""
    if not isinstance(item, uamp.AudioContent):
        return True
    return spec.provider not in _WITHOUT_SOUND or bool(audio_formats(spec.provider, spec.options))


def sound_tokens_read(
    spec: AgentSpec, item: uamp.AudioContent, extents: Mapping[str, Sequence[Extent]], rates: Rates
) -> int:
    """Return the number of tokens that a model counts for a sound."""
    if not _reads(spec, item):
        return MEDIUM_TOKENS
    bounded = _bounded(item, extents)
    ms = max((extent.amount for extent in bounded if extent.kind == "sound"), default=0)
    tokens = -(-ms * rates.second // 1000)
    return tokens if ms and rates is USUAL else max(tokens, MEDIUM_TOKENS)


def tokens_of_media(
    item: uamp.ContentItem, extents: Mapping[str, Sequence[Extent]], rates: Rates
) -> int | None:
    """Return the tokens that a model counts for a picture or PDF; None for other items."""
    bounded = _bounded(item, extents)
    pages = max((extent.amount for extent in bounded if extent.kind == "pdf"), default=0)
    tiles = max((extent.amount for extent in bounded if extent.kind == "picture"), default=0)
    if not pages and not tiles:
        return None
    of_picture = tiles * rates.tile
    if rates.max_of_picture is not None:
        of_picture = min(of_picture, rates.max_of_picture)
    if tiles and rates is not USUAL:
        of_picture = max(of_picture, MEDIUM_TOKENS)
    return max(pages * rates.page, of_picture)


def _bounded(item: uamp.ContentItem, extents: Mapping[str, Sequence[Extent]]) -> list[Extent]:
    """Return the extents of an item; files that could not be measured are withheld from models."""
    return [
        extent for name in ids_of(item) for extent in extents.get(name, ()) if extent.is_bounded
    ]
