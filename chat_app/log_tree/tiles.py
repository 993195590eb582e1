"""The tree as tiles of 256 hashes (C2SP tlog-tiles), from which clients compute any proof.

There are no entry bundles: an entry is the signed head of a chat's log, which names its chat.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from chat_app.log_tree import nodes
from chat_app.models import TreeCheckpoint
from uamp.transparency.tree import Node

WIDTH: Final = 256
"""The number of hashes in a full tile."""

_HEIGHT: Final = 8
_LEVEL: Final = re.compile(r"[0-9]|[1-5][0-9]|6[0-3]")
_PLACE: Final = re.compile(
    r"(?P<index>(?:x[0-9]{3}/){0,5}[0-9]{3})"
    r"(?:\.p/(?P<width>[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5]))?"
)
_LEADING_ZEROS: Final = "x000/"


@dataclass(frozen=True, slots=True)
class Tile:
    """Consecutive hashes, each that of 256**level leaves."""

    level: int
    index: int
    width: int


def read_tile(level: str, place: str) -> Tile | None:
    """Return the tile that a path names, such as `x001/x234/067.p/8`; None for another path."""
    match = _PLACE.fullmatch(place)
    if match is None or place.startswith(_LEADING_ZEROS) or not _LEVEL.fullmatch(level):
        return None
    index = int(match["index"].replace("x", "").replace("/", ""))
    return Tile(int(level), index, int(match["width"] or WIDTH))


def tile_hashes(tile: Tile) -> bytes | None:
    """Return the hashes of a tile, or None if the tree that was signed last is smaller.

    Raises TreeChanged.
    """
    newest = TreeCheckpoint.objects.order_by("-size").values_list("size", flat=True).first() or 0
    level, first = _HEIGHT * tile.level, tile.index * WIDTH
    if first + tile.width > newest >> level:
        return None
    return b"".join(nodes.hashes([Node(level, first + place) for place in range(tile.width)]))
