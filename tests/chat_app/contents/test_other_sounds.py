"""Upper bounds of the length of less common sounds; a sound without a bound is not measured."""

from __future__ import annotations

import struct
from typing import Final

import pytest

from chat_app.contents.sound.length import LONGEST_MS, longest_ms

MINUTE: Final = 60_000


def extended(value: int) -> bytes:
    """Return a whole number as 80 bits of IEEE 754."""
    bits = value.bit_length()
    return struct.pack(">HQ", 16_383 + bits - 1, value << 64 - bits)


def chunk(name: bytes, body: bytes) -> bytes:
    return name + struct.pack(">I", len(body)) + body


def aiff(hertz: int, samples: bytes, *, frames: int = 0, kind: bytes = b"") -> bytes:
    about = struct.pack(">hIh", 1, frames, 8) + extended(hertz) + kind
    chunks = chunk(b"COMM", about) + chunk(b"SSND", bytes(8) + samples)
    return b"FORM" + struct.pack(">I", 4 + len(chunks)) + (b"AIFC" if kind else b"AIFF") + chunks


def caf(hertz: float, kind: bytes, sizes: tuple[int, int], *more: bytes) -> bytes:
    about = struct.pack(">d4sIIIII", hertz, kind, 0, *sizes, 1, 8)
    return b"caff\0\1\0\0" + wide(b"desc", about) + b"".join(more)


def wide(name: bytes, body: bytes) -> bytes:
    return name + struct.pack(">q", len(body)) + body


def table(packets: int, frames: int) -> bytes:
    return wide(b"pakt", struct.pack(">qqii", packets, frames, 0, 0) + bytes(packets))


def au(encoding: int, hertz: int, samples: bytes) -> bytes:
    return b".snd" + struct.pack(">IIIII", 24, len(samples), encoding, hertz, 1) + samples


AMR: Final = b"#!AMR\n"
# A frame of 12.2 kbit/s, and one that has no sound.
LOUD, SILENT = b"\x3c" + bytes(31), b"\x7c"
SILENCE: Final = bytes(480_000)
# Name: the file, its media type, how long it plays, and how many times that it may count.
SOUNDS: dict[str, tuple[bytes, str, int, float]] = {
    "amr": (AMR + LOUD * 3_000, "audio/amr", MINUTE, 1),
    "amr of silence": (AMR + SILENT * 3_000, "audio/amr", MINUTE, 1),
    "amr of both": (AMR + LOUD + SILENT * 2_998 + LOUD, "audio/amr", MINUTE, 1),
    "amr of unknown frames": (AMR + b"\x4c" * 3_000, "audio/amr", MINUTE, 1.1),
    "amr cut off": (AMR + SILENT * 3_000 + b"\x3c", "audio/amr", MINUTE, 1.1),
    "amr wide": (b"#!AMR-WB\n" + b"\x04" + bytes(17) + b"\x7c" * 2_999, "audio/amr-wb", MINUTE, 1),
    "amr of two channels": (b"#!AMR_MC1.0\n" + SILENT * 3_000, "audio/amr", MINUTE, 1.1),
    "aiff": (aiff(8_000, SILENCE), "audio/aiff", MINUTE, 1.01),
    "aiff that is slow": (aiff(10, bytes(600)), "audio/aiff", MINUTE, 1.3),
    "aiff that claims more": (aiff(8_000, b"", frames=480_000), "audio/aiff", MINUTE, 1.01),
    "aiff with a header after the sound": (
        aiff(48_000, SILENCE) + b"x" + chunk(b"COMM", aiff(8_000, b"")[20:38]), "audio/aiff",
        MINUTE, 1.01,
    ),
    "aifc of µ-law": (aiff(8_000, SILENCE, kind=b"ulaw"), "audio/aiff", MINUTE, 1.01),
    "aifc that is compressed": (aiff(8_000, bytes(15_000), kind=b"GSM "), "audio/aiff", MINUTE, 2),
    "caf": (caf(8_000, b"lpcm", (1, 1), wide(b"data", SILENCE)), "audio/x-caf", MINUTE, 1.01),
    "caf of constant packets": (
        caf(8_000, b"ima4", (34, 64), wide(b"data", bytes(34 * 7_500))), "audio/x-caf", MINUTE, 1.1,
    ),
    "caf of a table": (
        caf(48_000, b"aac ", (0, 1_024), table(2_813, 0)), "audio/x-caf", MINUTE, 1.01,
    ),
    "caf whose table claims more": (
        caf(48_000, b"aac ", (0, 1_024), table(10, 2_880_000)), "audio/x-caf", MINUTE, 1.01,
    ),
    "au": (au(2, 16_000, SILENCE * 4), "audio/basic", 2 * MINUTE, 1.01),
    "au of µ-law": (au(1, 8_000, SILENCE), "audio/basic", MINUTE, 1.01),
    "raw": (SILENCE, "audio/pcmu", MINUTE, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", SOUNDS)
def test_a_sound_counts_at_least_as_long_as_it_plays(name: str) -> None:
    data, mime_type, plays, ratio = SOUNDS[name]
    assert plays <= longest_ms(data, mime_type) <= plays * ratio


@pytest.mark.parametrize(
    ("data", "mime_type"),
    [
        (bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c") + bytes(99), "audio/x-ms-wma"),
        (b"MAC \x96\x0f" + bytes(99), "audio/x-ape"),
        (b"wvpk" + bytes(99), "audio/x-wavpack"),
        (b"MThd\0\0\0\6" + bytes(99), "audio/midi"),
        (bytes(99), "audio/unknown"),
        (aiff(0x8000, b"")[:12] + bytes(99), "audio/aiff"),
        (aiff(1, bytes(9)).replace(extended(1), bytes(10)), "audio/aiff"),
        (caf(0.001, b"lpcm", (1, 1)), "audio/x-caf"),
        (caf(8_000, b"aac ", (0, 0), table(9, 0)), "audio/x-caf"),
        (caf(float("nan"), b"lpcm", (1, 1)), "audio/x-caf"),
        (b".snd" + bytes(8), "audio/basic"),
        (b"\x1aE\xdf\xa3" + bytes(99), "audio/webm"),
    ],
)
def test_what_has_no_bound_is_not_measured(data: bytes, mime_type: str) -> None:
    assert longest_ms(data, mime_type) == LONGEST_MS
