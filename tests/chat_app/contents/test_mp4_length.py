"""Upper bounds of the length of MP4 sound, whatever the file's tables claim."""

from __future__ import annotations

import struct

import pytest

from chat_app.contents.sound.length import longest_ms

AAC_8000 = b"\x15\x88"
AAC_1_HERTZ = bytes.fromhex("1780000088")
DATA = bytes(300)


def box(kind: bytes, *body: bytes) -> bytes:
    return struct.pack(">I", 8 + len(b"".join(body))) + kind + b"".join(body)


def table(kind: bytes, *numbers: int, head: tuple[int, ...] = (0,)) -> bytes:
    return box(kind, struct.pack(f">{len(head) + len(numbers)}I", *head, *numbers))


def header(kind: bytes, scale: int, duration: int) -> bytes:
    return table(kind, 0, 0, scale, duration, 0)


def aac(configuration: bytes = AAC_8000) -> bytes:
    decoder = b"\x05" + bytes([len(configuration)]) + configuration
    decoder = b"\x04" + bytes([13 + len(decoder)]) + b"\x40" + bytes(12) + decoder
    stream = b"\x03" + bytes([3 + len(decoder)]) + bytes(3) + decoder
    return entry(b"mp4a", 44_100, box(b"esds", bytes(4), stream))


def entry(kind: bytes, hertz: int, more: bytes = b"") -> bytes:
    return box(kind, bytes(16) + struct.pack(">HHHHHH", 1, 16, 0, 0, hertz, 0), more)


def track(
    description: bytes,
    samples: int = 0,
    *,
    ticks: int = 1_024,
    sizes: bytes | None = None,
    edits: bytes = b"",
    duration: int = 0,
) -> bytes:
    described = table(b"stsd", head=(0, 1))[8:]
    tables = box(
        b"stbl",
        box(b"stsd", described, description),
        table(b"stts", 1, samples, ticks),
        table(b"stsz", 1, samples) if sizes is None else sizes,
    )
    return box(b"trak", edits, box(b"mdia", header(b"mdhd", 8_000, duration), box(b"minf", tables)))


def mp4(*tracks: bytes, duration: int = 0, more: bytes = b"") -> bytes:
    movie = box(b"moov", header(b"mvhd", 1_000, duration), *tracks)
    return box(b"ftyp", b"M4A ", bytes(4)) + movie + more + box(b"mdat", DATA)


def alac(samples: int, hertz: int) -> bytes:
    cookie = struct.pack(">IIIIIII", 0, samples, 0, 0, 0, 0, hertz)
    return entry(b"alac", 44_100, box(b"alac", cookie))


HONEST = track(aac(), 500)  # 64 seconds
EDITS = box(b"edts", table(b"elst", *(60_000, 0, 1 << 16) * 60, head=(0, 60)))

FILES = {
    "silence": (mp4(HONEST), 64_000),
    "samples that share their bytes": (mp4(track(aac(), 28_125)), 3_600_000),
    "samples that claim to be short": (mp4(track(aac(), 500, ticks=1)), 64_000),
    "samples that claim to be long": (mp4(track(aac(), 500, ticks=57_600)), 3_600_000),
    "a claim of the movie": (mp4(HONEST, duration=3_600_000), 3_600_000),
    "a claim of the track": (mp4(track(aac(), 500, duration=28_800_000)), 3_600_000),
    "an edit list that repeats": (mp4(track(aac(), 500, edits=EDITS)), 3_600_000),
    "a slow rate in the configuration": (mp4(track(aac(AAC_1_HERTZ), 4)), 4_096_000),
    "fragments": (
        mp4(track(aac()), more=box(b"moof", box(b"traf", table(b"trun", 250))) * 2), 64_000,
    ),
    "long frames": (mp4(track(alac(2**20, 8_000), 10)), 1_310_720),
    "two descriptions, the slow one last": (mp4(track(aac(b"\x11\x90") + aac(), 500)), 64_000),
    "two tracks": (mp4(track(entry(b"text", 0), 3), HONEST), 64_000),
    "a cover that is a film": (mp4(HONEST, track(entry(b"avc1", 0), 500)), 64_000),
    "a track in a strange place": (
        box(b"ftyp", b"M4A ", bytes(4)) + box(b"free", mp4(HONEST)) + box(b"mdat", DATA), 64_000,
    ),
    "a movie after a box that breaks off": (mp4(HONEST) + struct.pack(">I4s", 3, b"free"), 64_000),
    "a movie in the media data": (
        box(b"ftyp", b"M4A ", bytes(4)) + mp4(HONEST) + box(b"mdat", mp4(track(aac(), 28_125))),
        64_000,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_an_mp4_file_lasts_as_long_as_its_samples_and_claims(name: str) -> None:
    data, plays = FILES[name]
    assert plays <= longest_ms(data, "audio/mp4") <= plays * 1.03


@pytest.mark.parametrize(
    "data",
    [
        mp4(),
        mp4(HONEST, more=table(b"stsz", 1, 90_000)),
        mp4(HONEST)[:200],
        mp4(track(box(b"mp4a", bytes(28)), 10**6)),
        mp4(track(entry(b"mp4a", 1, box(b"esds", bytes(4), b"\x03\x80\x80")), 10**6)),
        mp4(track(entry(b"odd ", 8_000), 10**6)),
    ],
    ids=range(6),
)
def test_an_mp4_file_that_cannot_be_read_lasts_as_long_as_any(data: bytes) -> None:
    assert longest_ms(data, "audio/mp4") == 10**9
