"""The measuring of sounds, PDFs and pictures: the worst files of the largest size that is stored.

Each file is measured in a process of its own with the limits of the server (5 s of CPU, 1 GiB), as
`chat_app.contents.measures` does it. CPU time is that of one file; memory is the largest resident
set, with the start of Python. `stopped` files reached a limit and have no bound. A picture is
checked as it is when it is stored, in a thread and without limits.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from benchmarks import results, servers
from benchmarks.rounds import measure, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MAX_BYTES: Final = 25 * 1024 * 1024
"""UAMP_UPLOAD_BYTES."""
MEGAPIXELS: Final = 50
SECONDS: Final = 120
_PEAK: Final = re.compile(r"VmHWM:\s+(\d+) kB")


class Measurement(NamedTuple):
    """The CPU time, the largest resident set, and the extent or `stopped`."""

    seconds: float
    megabytes: float
    extent: str


def _repeated(piece: bytes, size: int, head: bytes = b"") -> bytes:
    return head + piece * ((size - len(head)) // len(piece))


def _opus(size: int) -> bytes:
    """Return pages of Ogg that are full of the shortest packets."""

    def page(packets: bytes, count: int, flags: int) -> bytes:
        lengths = bytes([len(packets) // count]) * count
        head = struct.pack("<4sBBqIIIB", b"OggS", 0, flags, 0, 1, 0, 0, count)
        return head + lengths + packets

    return _repeated(page(b"\x03\x06" * 255, 255, 0), size, page(b"OpusHead" + bytes(11), 1, 2))


def _pages(size: int) -> bytes:
    """Return a PDF of 1,000 pages, each of which shows as much text as fits into the size."""
    from tests.chat_app.contents.pdf_files import CATALOG, pdf, stream  # noqa: PLC0415 needed for this file only

    pages = 1_000
    line = b"BT /F 12 Tf (The quick brown fox jumps over the lazy dog) Tj ET\n"
    text = line * (size // pages // len(line))
    leaves = b" ".join(b"%d 0 R" % (10 + 2 * n) for n in range(pages))
    box = b"/MediaBox [0 0 612 792]"
    objects = {
        1: CATALOG,
        2: b"<< /Type /Pages %s /Kids [%s] /Count %d >>" % (box, leaves, pages),
        5: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    }
    for n in range(pages):
        about = b"/Resources << /Font << /F 5 0 R >> >> /Contents %d 0 R" % (11 + 2 * n)
        objects[10 + 2 * n] = b"<< /Type /Page /Parent 2 0 R %s >>" % about
        objects[11 + 2 * n] = stream(text)
    return pdf(objects)


def _bomb(size: int) -> bytes:
    """Return a PDF with one content stream that inflates to 20 times the size."""
    from tests.chat_app.contents.pdf_files import shown, stream  # noqa: PLC0415 needed for this file only

    text = zlib.compress(b"BT /F 12 Tf (a) Tj ET\n" * (20 * size // 22))
    return shown(stream(text, b"/Filter /FlateDecode"), pages=1_000)


def _png(size: int) -> bytes:
    """Return a picture of 50 megapixels, as large as it may be: its chunks are checksummed."""
    from PIL import Image  # noqa: PLC0415 needed for this file only

    file = io.BytesIO()
    noise = random.Random(1).randbytes(MEGAPIXELS * 10**6 // 8)  # noqa: S311 only has to be incompressible
    Image.frombytes("1", (8_000, MEGAPIXELS * 125), noise).save(file, "png", compress_level=0)
    data = file.getvalue()
    # A chunk that no reader knows fills it up.
    body = b"spAm" + bytes(size - len(data) - 12)
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    return data[:33] + chunk + data[33:]


FILES: Final[dict[str, tuple[str, Callable[[int], bytes]]]] = {
    "MP3 of frames of 24 ms": ("audio/mpeg", partial(_repeated, b"\xff\xf3\x14\xc0" + bytes(20))),
    "MP3 without frames": ("audio/mpeg", partial(_repeated, b"\xff\xfb\x00\x00")),
    "AAC of the shortest frames": (
        "audio/aac",
        partial(_repeated, b"\xff\xf1\x50\x00\x01\x1f\xfc\x00"),
    ),
    "AMR of silent frames": ("audio/amr", partial(_repeated, b"\x7c", head=b"#!AMR\n")),
    "Opus of packets of two bytes": ("audio/ogg", _opus),
    "PDF of 1,000 pages of text": ("application/pdf", _pages),
    "PDF that inflates": ("application/pdf", _bomb),
    "PNG of 50 megapixels": ("image/png", _png),
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each file in shuffled turns, and print its CPU time and memory."""
    parser = results.parser("media", __doc__)
    parser.add_argument("--bytes", type=int, default=MAX_BYTES, metavar="N", help="of each file")
    parser.add_argument("--here", nargs=2, metavar=("FILE", "TYPE"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.here:
        path, mime_type = options.here
        print(*_measured(Path(path).read_bytes(), mime_type))
        return
    with (
        results.Results("media", options.results) as report,
        tempfile.TemporaryDirectory(prefix="uamp-bench-") as folder,
    ):
        cells: dict[str, Callable[[], Measurement]] = {}
        sizes = {}
        for number, (name, (mime_type, make)) in enumerate(FILES.items()):
            path = Path(folder) / str(number)
            sizes[name] = path.write_bytes(make(options.bytes))
            cells[name] = partial(_run, path, mime_type)
        runs = measure(cells, options.rounds)
        for name in FILES:
            seconds = spread([run.seconds for run in runs[name]])
            memory = spread([run.megabytes for run in runs[name]])
            size = sizes[name] / 1024 / 1024
            extents = ", ".join(sorted({run.extent for run in runs[name]}))
            print(f"{name}, {size:.1f} MiB: {seconds} s, {memory} MiB, {extents}", flush=True)
            report.add(f"media.{name}.seconds", seconds, "s")
            report.add(f"media.{name}.memory", memory, "MiB")


def _run(path: Path, mime_type: str) -> Measurement:
    module = "benchmarks.commands.data.media"
    finished = subprocess.run(  # noqa: S603 our own interpreter
        [sys.executable, "-m", module, "--here", str(path), mime_type],
        cwd=servers.ROOT,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if finished.returncode:
        raise RuntimeError(finished.stderr[-4000:])
    seconds, megabytes, extent = finished.stdout.split()
    return Measurement(float(seconds), float(megabytes), extent)


def _measured(data: bytes, mime_type: str) -> tuple[float, float, str]:
    """Measure a file within the limits; return the CPU time, the peak memory and the extent."""
    from agents_app.workers.child_limits import (  # noqa: PLC0415 in the process that measures
        CpuTimeError,
        cpu_limit,
        limit_memory,
    )
    from chat_app.contents import measures, media_types  # noqa: PLC0415 in the process that measures

    before = time.process_time()
    if mime_type.startswith("image/"):
        media_types.check_picture(data, mime_type)
        extent = "checked"
    else:
        limit_memory(1024**3)
        try:
            with cpu_limit(measures.CPU_SECONDS):
                extent = str(measures.measure_here(data, mime_type))
        except (CpuTimeError, MemoryError, RecursionError):
            extent = "stopped"
    seconds = time.process_time() - before
    peak = _PEAK.search(Path("/proc/self/status").read_text())
    return seconds, int(peak[1]) / 1024 if peak else float("nan"), extent


if __name__ == "__main__":
    main()
