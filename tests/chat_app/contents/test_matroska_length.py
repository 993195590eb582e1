"""Upper bounds of the length of WebM and Matroska sound."""

from __future__ import annotations

import struct

import pytest

from chat_app.contents.sound.length import longest_ms

OPEN = b"\x01" + b"\xff" * 7
# Packets of 120 ms in two bytes, and frames of 20 ms.
SILENT = b"\x1b\x02"
SPOKEN = b"\x78" + bytes(79)


def element(name: int, *bodies: bytes, size: bytes | None = None) -> bytes:
    body = b"".join(bodies)
    stated = (len(body) | 1 << 56).to_bytes(8) if size is None else size
    return name.to_bytes(-(-name.bit_length() // 8)) + stated + body


def track(
    codec: bytes = b"A_OPUS", number: int = 1, rate: float = 48_000, more: bytes = b""
) -> bytes:
    audio = element(0xE1, element(0xB5, struct.pack(">d", rate)))
    return element(0xAE, element(0xD7, bytes([number])), element(0x86, codec), audio, more)


def block(data: bytes, *, flags: int = 0, number: int = 1, name: int = 0xA3) -> bytes:
    return element(name, bytes([0x80 | number, 0, 0, flags]), data)


def webm(
    *blocks: bytes, tracks: bytes | None = None, info: bytes = b"", cluster: bytes | None = None
) -> bytes:
    described = element(0x1654AE6B, track() if tracks is None else tracks)
    parts = element(0x1549A966, info), described, element(0x1F43B675, *blocks, size=cluster)
    return element(0x1A45DFA3, b"\x42\x82\x84webm") + element(0x18538067, *parts, size=OPEN)


LONG_INFO = element(0x2AD7B1, b"\x0f\x42\x40") + element(0x4489, struct.pack(">d", 3_600_000))
GROUPS = [element(0xA0, block(SILENT, name=0xA1))] * 500
AAC = track(b"A_AAC", rate=44_100, more=element(0x63A2, b"\x15\x88"))
ZIPPED = track(more=element(0x6D80, b""))
FILM = track(b"V_VP9") + track(number=2)
HIDDEN = element(0xEC, bytes(9), size=b"\xff")

FILES = {
    "speech": (webm(*[block(SPOKEN)] * 500), 10_000),
    "silence": (webm(*[block(SILENT)] * 500), 60_000),
    "silence without an end": (webm(*[block(SILENT)] * 500, cluster=OPEN), 60_000),
    "silence in groups": (webm(*GROUPS), 60_000),
    "several frames in a block": (webm(*[block(b"\x09" + SILENT * 10, flags=4)] * 50), 60_000),
    "packets that are compressed again": (webm(*[block(SPOKEN)] * 500, tracks=ZIPPED), 60_000),
    "a claim": (webm(block(SILENT), info=LONG_INFO), 3_600_000),
    "silence in AAC": (webm(*[block(b"xx")] * 500, tracks=AAC), 64_000),
    "two codecs in one track": (
        webm(*[block(SPOKEN)] * 6, tracks=track(more=element(0x86, b"A_MPEG/L3"))), 60_000,
    ),
    "two tracks with one number": (
        webm(*[block(SILENT)] * 500, tracks=track(b"V_VP9") + track()), 60_000,
    ),
    "a film": (webm(*[block(b"x")] * 900, block(SILENT, number=2), tracks=FILM), 120),
    "blocks of a track that is not described": (webm(*[block(SPOKEN, number=5)] * 6), 60_000),
    "two segments": (webm(*[block(SILENT)] * 250) + webm(*[block(SILENT)] * 250), 60_000),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_matroska_file_lasts_as_long_as_its_blocks_and_claims(name: str) -> None:
    data, plays = FILES[name]
    assert plays <= longest_ms(data, "audio/webm") <= plays * 1.03


@pytest.mark.parametrize(
    "data",
    [
        webm(block(SILENT))[:-1],
        webm(tracks=b""),
        webm(HIDDEN),
        webm(element(0xA0, element(0xA1, bytes(4), size=b"\x90"))),
        webm(block(SILENT)) + b"\0",
        webm(element(0xA3, b"\x81\0")),
    ],
    ids=range(6),
)
def test_a_matroska_file_whose_elements_do_not_fit_lasts_as_long_as_any(data: bytes) -> None:
    assert longest_ms(data, "audio/webm") == 10**9
