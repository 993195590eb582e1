"""The length of Opus packets (RFC 6716, section 3.1)."""

# ruff: noqa: PLR2004 the formats define these numbers
from __future__ import annotations

from typing import Final

PACKET_US: Final = 120_000
"""The longest packet."""
_FRAMES: Final = (10_000, 20_000, 40_000, 60_000)


def packet_us(data: bytes, position: int) -> int:
    """Return the length of the packet that begins at a position, by its first two bytes."""
    if position >= len(data):
        return 0
    toc = data[position]
    config = toc >> 3
    if config < 12:
        frame = _FRAMES[config & 3]
    elif config < 16:
        frame = (10_000, 20_000)[config & 1]
    else:
        frame = (2_500, 5_000, 10_000, 20_000)[config & 3]
    if toc & 3 < 3:
        return frame * (1, 2, 2)[toc & 3]
    return min(frame * (data[position + 1] & 63), PACKET_US) if position + 1 < len(data) else 0
