"""How long a sound lasts at most, from bytes that hide a part of it from a simple reader."""

from __future__ import annotations

import struct

import pytest

from chat_app.contents.sound.length import longest_ms

# Frames of MP3: 24 bytes of 24 ms at 8 kbit/s, and 960 bytes of 24 ms at 320 kbit/s.
SLOW = b"\xff\xf3\x14\xc0" + bytes(20)
FAST = b"\xff\xfb\xe4\x00" + bytes(956)
MINUTE = SLOW * 2_500


def chunk(name: bytes, body: bytes) -> bytes:
    return name + struct.pack("<I", len(body)) + body


def wave_format(
    tag: int = 1, channels: int = 1, hertz: int = 8_000, bits: int = 8, more: bytes = b""
) -> bytes:
    block = channels * bits // 8
    return struct.pack("<HHIIHH", tag, channels, hertz, hertz * block, block, bits) + more


def wave(*chunks: bytes, form: bytes = b"RIFF") -> bytes:
    body = b"".join(chunks)
    return form + struct.pack("<I", 4 + len(body)) + b"WAVE" + body


def extensible(tag: int) -> bytes:
    guid = struct.pack("<H", tag) + bytes.fromhex("000000001000800000aa00389b71")
    return wave_format(0xFFFE, bits=16, more=struct.pack("<HHI", 22, 16, 4) + guid)


FORMAT = chunk(b"fmt ", wave_format())
FAST_FORMAT = chunk(b"fmt ", wave_format(channels=9_000, hertz=2**17, bits=16))
SAMPLES = chunk(b"data", b"\x80" * 480_000)

WAVES = {
    "honest": (wave(FORMAT, SAMPLES), 60_000),
    "a false format in another chunk": (
        wave(chunk(b"JUNK", FAST_FORMAT), FORMAT, SAMPLES), 60_000,
    ),
    "a false format in a chunk of odd size": (
        wave(chunk(b"JUNK", FAST_FORMAT + b"x"), FORMAT, SAMPLES), 60_000,
    ),
    "two formats": (wave(FAST_FORMAT, FORMAT, SAMPLES), 60_000),
    "two formats, the slow one first": (wave(FORMAT, FAST_FORMAT, SAMPLES), 60_000),
    "a format after the samples": (wave(FAST_FORMAT, SAMPLES, FORMAT), 60_000),
    "a format far away": (wave(chunk(b"JUNK", bytes(9_000)), FORMAT, SAMPLES), 60_000),
    "RF64": (wave(FORMAT, SAMPLES, form=b"RF64"), 60_000),
    "a length of samples that is unknown": (
        wave(FORMAT, SAMPLES.replace(struct.pack("<I", 480_000), b"\xff" * 4, 1)), 60_000,
    ),
    "µ-law that claims more bits": (
        wave(chunk(b"fmt ", wave_format(7, bits=800)), SAMPLES), 60_000,
    ),
    "a compressed format in an extensible one": (
        wave(chunk(b"fmt ", extensible(0x55)), SAMPLES), 480_000 * 4,
    ),
    "16 bits in an extensible one": (wave(chunk(b"fmt ", extensible(1)), SAMPLES), 30_000),
    "compressed, with a claim": (
        wave(
            chunk(b"fmt ", wave_format(0x55)),
            chunk(b"fact", struct.pack("<I", 8_000 * 3_600)),
            chunk(b"data", bytes(80)),
        ),
        3_600_000,
    ),
}  # fmt: skip

MPEG = {
    "honest": (MINUTE, 60_000),
    "a tag with an invalid size": (b"ID3\4\0\0\xff\xff\xff\xff" + MINUTE, 60_000),
    "a tag longer than the file": (b"ID3\4\0\0\x7f\x7f\x7f\x7f" + MINUTE, 60_000),
    "a tag that is none to some": (b"ID3\4\0\0\0\3\x53\x60" + MINUTE + SLOW, 60_000),
    "two tags": ((b"ID3\4\0\0\0\0\x64\0" + bytes(12_800)) * 2 + MINUTE, 60_000),
    "slow frames that fast ones cover": (
        SLOW + (FAST[:4] + (SLOW * 40)[:956]) * 60, 60 * 39 * 24,
    ),
    "slow frames after a broken fast one": (FAST[:600] + MINUTE, 60_000),
}  # fmt: skip


@pytest.mark.parametrize("name", WAVES)
def test_a_wave_file_lasts_as_long_as_players_play_it(name: str) -> None:
    data, plays = WAVES[name]
    assert plays <= longest_ms(data, "audio/wav") <= plays * 1.03


@pytest.mark.parametrize("name", MPEG)
def test_mpeg_frames_last_as_long_as_any_player_finds(name: str) -> None:
    data, plays = MPEG[name]
    assert plays <= longest_ms(data, "audio/mpeg") <= plays * 1.05
