"""The instructions of a turn, free and paid, here and in other commits.

Counted by callgrind in one process, with the writes of its store but without the kernel and
PostgreSQL's own processes. Time varies with the load of a machine, instructions hardly do: changes
can be judged while other programs run. Takes about two minutes per commit and database.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from benchmarks import AGENT, PAID_AGENT, earlier, results, servers, turn_runs
from benchmarks.reference.installation import cache_folder
from benchmarks.rounds import spread

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.servers import Data

COUNTING: Final = servers.ROOT / "benchmarks" / "counting"
HERE: Final = "here"
PARTS: Final = ("signature", "chain")
ROUNDS: Final = 3
RUN_SECONDS: Final = 1800
# By agent, in thousands per turn.
Counts = dict[str, float]


def main(arguments: Sequence[str] | None = None) -> None:
    """Count each commit once per database, and print thousands of instructions per turn."""
    parser = results.parser("instructions", __doc__)
    parser.add_argument("--against", nargs="*", default=[], metavar="COMMIT")
    parser.add_argument(
        "--without",
        nargs="+",
        default=[],
        choices=PARTS,
        help="count also without these parts of a turn, together",
    )
    parser.add_argument("--sockets", type=int, default=1, metavar="N", help="at once (1)")
    parser.add_argument("--warm", type=int, default=8, metavar="N", help="turns before (8)")
    parser.add_argument("--turns", type=int, default=8, metavar="N", help="turns that count (8)")
    chosen = parser.parse_args(arguments)
    if shutil.which("valgrind") is None or shutil.which("cc") is None:
        parser.error("needs valgrind with its headers, and a C compiler")
    with results.Results("instructions", chosen.results) as kept:
        print(f"{'':14}{'commit':16}{'agent':12}{'thousands':>10}   of here")
        for database in results.databases_of(chosen):
            base: Counts = {}
            for name in (HERE, *(["without"] if chosen.without else []), *chosen.against):
                tree = earlier.tree(name) if name in chosen.against else servers.ROOT
                settings = results.settings_of(chosen)
                without = chosen.without if name == "without" else []
                with servers.prepared(database, settings=settings, tree=tree) as data:
                    counts = counted(data, chosen.sockets, chosen.warm, chosen.turns, without)
                base = base or counts
                for agent, total in counts.items():
                    ratio = total / base[agent]
                    kept.add(f"instructions.{database}.{name}.{agent}", spread([total]), "ki")
                    print(
                        f"{database:14}{name[:14]:16}{agent:12}{total:>10,.0f}   {ratio:.3f}",
                        flush=True,
                    )


def counted(data: Data, sockets: int, warm: int, turns: int, without: Sequence[str] = ()) -> Counts:
    """Count turns with a free and with a paid agent, without some of PARTS."""
    order = {
        "without": list(without),
        "switch": str(compiled_switch()),
        "token": data.token,
        "agents": [AGENT, PAID_AGENT],
        "text": turn_runs.TEXT,
        "sockets": sockets,
        "warm": warm,
        "turns": turns,
        "rounds": ROUNDS,
    }
    command = [
        "valgrind",
        "--tool=callgrind",
        "--instr-atstart=no",
        f"--callgrind-out-file={data.folder}/counts",
        sys.executable,
        "-P",
        str(COUNTING / "program.py"),
        json.dumps(order),
    ]
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
    return sums_of(data.folder, sockets * turns * 1000)


def sums_of(folder: Path, divisor: int) -> Counts:
    """Return the least count of each name that the dumps of callgrind have."""
    found: Counts = {}
    for path in sorted(folder.glob("counts.*")):
        text = path.read_text()
        agent = re.search(r"^desc: Trigger: Client Request: (.+)$", text, re.MULTILINE)
        amount = re.search(r"^totals: (\d+)", text, re.MULTILINE)
        if agent is None or amount is None:
            continue
        # What runs by chance beside the turns only adds to them.
        found[agent[1]] = min(found.get(agent[1], math.inf), int(amount[1]) / divisor)
    return found


def compiled_switch() -> Path:
    """Return the compiled switch of the counter."""
    library = cache_folder() / "counting.so"
    source = COUNTING / "switch.c"
    if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
        library.parent.mkdir(parents=True, exist_ok=True)
        compile_it = ["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(source)]
        subprocess.run(compile_it, check=True, timeout=60)  # noqa: S603 the system's compiler
    return library
