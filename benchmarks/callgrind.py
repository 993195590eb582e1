"""Programs of `counting/`, run under callgrind, which counts their instructions."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.reference.installation import cache_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.servers import Data

COUNTING: Final = Path(__file__).parent / "counting"
RUN_SECONDS: Final = 1800
# Instructions by what they were counted for.
Counts = dict[str, float]


def run(program: str, data: Data, order: Mapping[str, object], *, counting: bool = True) -> str:
    """Run a program on prepared data and return what it prints."""
    command = [sys.executable, "-P", str(COUNTING / program), json.dumps(order)]
    if counting:
        tool = ["valgrind", "--tool=callgrind", "--instr-atstart=no"]
        command = [*tool, f"--callgrind-out-file={data.folder}/counts", *command]
    environment = {
        **data.environment,
        # Hashes of text decide the order of sets, and with it some of the work.
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": os.pathsep.join([str(data.tree), str(COUNTING)]),
    }
    finished = subprocess.run(  # noqa: S603 our own program
        command,
        cwd=data.tree,
        env=environment,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    if finished.returncode:
        raise RuntimeError(finished.stderr[-4000:])
    return finished.stdout


def counts_in(folder: Path, divisor: int) -> Counts:
    """Return the least count by name in the dumps of a folder, divided."""
    counts: Counts = {}
    for path in sorted(folder.glob("counts.*")):
        text = path.read_text()
        name = re.search(r"^desc: Trigger: Client Request: (.+)$", text, re.MULTILINE)
        total = re.search(r"^totals: (\d+)", text, re.MULTILINE)
        if name is None or total is None:
            continue
        # What runs by chance beside the turns only adds to them.
        counts[name[1]] = min(counts.get(name[1], math.inf), int(total[1]) / divisor)
    return counts


def compiled_switch() -> Path:
    """Return the compiled switch of the counter."""
    library = cache_folder() / "counting.so"
    source = COUNTING / "switch.c"
    if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
        library.parent.mkdir(parents=True, exist_ok=True)
        compile_it = ["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(source)]
        subprocess.run(compile_it, check=True, timeout=60)  # noqa: S603 the system's compiler
    return library
