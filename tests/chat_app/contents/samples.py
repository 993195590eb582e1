"""Small files of many types, for tests of what their bytes prove."""

from __future__ import annotations

import io
import struct
from typing import Final

from PIL import Image


def picture(kind: str, **options: object) -> bytes:
    """Return a small red picture in a format of Pillow."""
    buffer = io.BytesIO()
    Image.new("RGB", (4, 4), "red").save(buffer, kind, **options)
    return buffer.getvalue()


def mpo() -> bytes:
    """Return a JPEG of several pictures, as telephones write them."""
    return picture("MPO", save_all=True, append_images=[Image.new("RGB", (4, 4), "blue")])


def _box(*brands: bytes) -> bytes:
    """Return the first box of an ISO base media file; the first brand is its major one."""
    body = b"ftyp" + brands[0] + b"\0\0\0\0" + b"".join(brands)
    return struct.pack(">I", 4 + len(body)) + body + b"\0\0\0\x08free\xff\xfe"


def _packets(size: int, first: int) -> bytes:
    """Return packets of a transport stream, whose sync bytes are at `first` in each."""
    return (b"\xff" * first + b"\x47" + b"\xff" * (size - first - 1)) * 6


JPEG: Final = picture("JPEG")
MPO: Final = mpo()
PNG: Final = picture("PNG")
GIF: Final = picture("GIF")
WEBP: Final = picture("WEBP")
TIFF: Final = picture("TIFF")
BIG_ENDIAN_TIFF: Final = b"MM\0*\0\0\0\x08\xff"
BMP: Final = picture("BMP")
AVIF: Final = _box(b"avif", b"mif1", b"miaf")
SHARED_AVIF: Final = _box(b"mif1", b"avif")
HEIC: Final = _box(b"heic", b"mif1")
SHARED_HEIC: Final = _box(b"mif1", b"heic")
M4A: Final = _box(b"M4A ", b"isom")
MP4: Final = _box(b"isom", b"mp41")
QUICKTIME: Final = _box(b"qt  ")
WAV: Final = b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\xff\xfe"
MP3: Final = b"ID3\x03\0\0\0\0\0\x0a\xff\xfb\x90\0"
FLAC: Final = b"fLaC\0\0\0\x22\xff\xff"
OGG: Final = b"OggS\0\x02" + b"\xff" * 22 + b"OpusHead"
FILM_OGG: Final = b"OggS\0\x02" + b"\xff" * 22 + b"\x80theora"
WEBM: Final = b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\x82\x84webm"
MATROSKA: Final = b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\x82\x88matroska"
TRANSPORT_STREAM: Final = _packets(188, 0)
RECORDED_STREAM: Final = _packets(192, 4)
PDF: Final = b"%PDF-1.7\n1 0 obj\n"
ZIP: Final = b"PK\x03\x04\x14\0\0\0\xff\xfe"
TYPESCRIPT: Final = b"import { x } from './x';\nGGG\nexport const y: number = x;\n"
UTF_16: Final = "Größe;Preis\n1;2\n".encode("utf-16")
PAGE: Final = b"<!DOCTYPE html><html><script>alert(1)</script>"
