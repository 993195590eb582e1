"""The instructions of a turn, free and paid, here and in other commits.

Counted by callgrind in one process, with the writes of its store but without the kernel and
PostgreSQL's own processes. Time varies with the load of a machine, instructions hardly do: changes
can be judged while other programs run. Takes about two minutes per commit and database.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

from benchmarks import AGENT, PAID_AGENT, callgrind, earlier, results, servers, turn_runs
from benchmarks.rounds import spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.callgrind import Counts
    from benchmarks.servers import Data

HERE: Final = "here"
PARTS: Final = ("signature", "chain")
ROUNDS: Final = 3


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
    options = parser.parse_args(arguments)
    if shutil.which("valgrind") is None or shutil.which("cc") is None:
        parser.error("needs valgrind with its headers, and a C compiler")
    with results.Results("instructions", options.results) as report:
        print(f"{'':14}{'commit':16}{'agent':12}{'thousands':>10}   of here")
        for database in results.databases_of(options):
            base: Counts = {}
            for name in (HERE, *(["without"] if options.without else []), *options.against):
                tree = earlier.tree(name) if name in options.against else servers.ROOT
                settings = results.settings_of(options)
                without = options.without if name == "without" else []
                with servers.prepared(database, settings=settings, tree=tree) as data:
                    counts = counted(data, options.sockets, options.warm, options.turns, without)
                base = base or counts
                for agent, total in counts.items():
                    ratio = total / base[agent]
                    report.add(f"instructions.{database}.{name}.{agent}", spread([total]), "ki")
                    print(
                        f"{database:14}{name[:14]:16}{agent:12}{total:>10,.0f}   {ratio:.3f}",
                        flush=True,
                    )


def counted(data: Data, sockets: int, warm: int, turns: int, without: Sequence[str] = ()) -> Counts:
    """Return thousands of instructions by agent, free and paid, without some of PARTS."""
    order = {
        "without": list(without),
        "switch": str(callgrind.compiled_switch()),
        "token": data.token,
        "agents": [AGENT, PAID_AGENT],
        "text": turn_runs.TEXT,
        "sockets": sockets,
        "warm": warm,
        "turns": turns,
        "rounds": ROUNDS,
    }
    callgrind.run("program.py", data, order)
    return callgrind.counts_in(data.folder, sockets * turns * 1000)
