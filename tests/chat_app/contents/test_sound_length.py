"""Upper bounds of the length of a sound, from bytes that hide a part from a simple reader."""

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


def flac_frame(size: bytes, rate: bytes = b"", *, codes: int) -> bytes:
    """Return a frame of silence; `codes` are those of its size and of its sampling rate."""
    head = b"\xff\xf8" + bytes([codes, 0, 0]) + size + rate
    crc = 0
    for byte in head:
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1 ^ 0x07) & 0xFF if crc & 0x80 else crc << 1
    return head + bytes([crc]) + bytes(6)


def flac_head(largest: int = 4_096, hertz: int = 8_000, claimed: int = 0) -> bytes:
    info = struct.pack(">HH", 16, largest) + bytes(6) + (hertz << 4).to_bytes(3)
    return b"fLaC\x80\0\0\x22" + info + claimed.to_bytes(5) + bytes(16)


USUAL_FRAME = flac_frame(b"", codes=0xC0)  # 4,096 samples
LONG_FRAME = flac_frame(b"\xff\xff", codes=0x70)  # 65,536 samples
SLOW_FRAME = flac_frame(b"", b"\x03\xe8", codes=0xCD)  # 4,096 samples at 1,000 Hz

FLACS = {
    "honest": (flac_head() + USUAL_FRAME * 100, 51_200),
    "a claim": (flac_head(claimed=8_000 * 3_600) + USUAL_FRAME, 3_600_000),
    "frames longer than the largest": (flac_head() + LONG_FRAME * 100, 819_200),
    "frames slower than the rate": (flac_head(hertz=96_000) + SLOW_FRAME * 100, 409_600),
    "noise between frames": (flac_head() + (USUAL_FRAME + b"\xff\xf8" * 50) * 100, 51_200),
    "a tag before it": (
        b"ID3\4\0\0\0\0\0\7" + bytes(7) + flac_head() + LONG_FRAME * 100, 819_200,
    ),
}  # fmt: skip


def ogg_page(*packets: bytes, flags: int = 0, serial: int = 1, granule: int = 0) -> bytes:
    table = b"".join(
        b"\xff" * (len(packet) // 255) + bytes([len(packet) % 255]) for packet in packets
    )
    head = struct.pack("<4sBBqIIIB", b"OggS", 0, flags, granule, serial, 0, 0, len(table))
    return head + table + b"".join(packets)


def vorbis(hertz: int) -> bytes:
    return b"\x01vorbis" + struct.pack("<IBIiiiB", 0, 1, hertz, 0, 0, 0, 0xDD) + b"\x01"


FALSE_HEAD = vorbis(2**32 - 1)
OPUS_HEAD = ogg_page(b"OpusHead" + bytes(11), flags=2)
# Packets of 120 ms in two bytes: a client that is silent sends hardly more.
SILENT = b"\x1b\x02"
SILENCE = ogg_page(*[SILENT] * 250) * 20

OGGS = {
    "silence": (OPUS_HEAD + SILENCE, 600_000),
    "another beginning first": (ogg_page(FALSE_HEAD, flags=6) + OPUS_HEAD + SILENCE, 600_000),
    "another beginning that is not marked": (
        ogg_page(FALSE_HEAD) + OPUS_HEAD + SILENCE, 600_000,
    ),
    "pages that pretend to go on": (
        OPUS_HEAD + ogg_page(SILENT, flags=1) * 5_000, 600_000,
    ),
    "pages that hide others": (
        OPUS_HEAD + (ogg_page(b"x" * 254)[:-254] + SILENCE[:6_000]) * 10, 10 * 7 * 30_000,
    ),
    "long blocks of FLAC": (
        ogg_page(b"\x7fFLAC\1\0\0\1" + flac_head(), flags=2) + ogg_page(*[LONG_FRAME] * 100),
        819_200,
    ),
    "an unknown format": (
        ogg_page(b"Speex   " + bytes(72), flags=2) + ogg_page(*[b"x"] * 250) * 4, 1_000_000,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WAVES)
def test_a_wave_file_lasts_as_long_as_players_play_it(name: str) -> None:
    data, plays = WAVES[name]
    assert plays <= longest_ms(data, "audio/wav") <= plays * 1.03


@pytest.mark.parametrize("name", MPEG)
def test_mpeg_frames_last_as_long_as_any_player_finds(name: str) -> None:
    data, plays = MPEG[name]
    assert plays <= longest_ms(data, "audio/mpeg") <= plays * 1.05


@pytest.mark.parametrize("name", FLACS)
def test_a_flac_file_lasts_as_long_as_its_frames(name: str) -> None:
    data, plays = FLACS[name]
    assert plays <= longest_ms(data, "audio/flac") <= plays * 1.03


@pytest.mark.parametrize("name", OGGS)
def test_an_ogg_file_lasts_at_least_as_long_as_its_packets(name: str) -> None:
    data, plays = OGGS[name]
    # A stream that begins twice counts as the longest packets of any format.
    limit = 10 if "beginning" in name else 1.1
    assert plays <= longest_ms(data, "audio/ogg") <= plays * limit
