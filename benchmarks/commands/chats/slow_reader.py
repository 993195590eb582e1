"""A chat member who stops reading, and the effect on the server and the other members.

One member requests long answers until the server owes every other member `--megabytes`. Ten of them
read; in every second run, one more reads nothing and has a small kernel buffer. Prints how much the
server's memory grew (PSS, at the end, with the sockets open) with and without that member, and how
long the readers waited for a whole answer.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from benchmarks import AGENT, gauges, results, servers, turn_runs
from benchmarks.clients.rooms import RoomOrder
from benchmarks.rounds import measure, ratio, spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.servers import Data
    from benchmarks.turn_runs import TurnTarget

MIB: Final = 2**20
READERS: Final = 10
# 200,000 bytes of text; the question, the deltas and the answer are sent to every member.
TEXT: Final = "x" * 199 + " "
WORDS: Final = 1000
CLIENT: Final = "benchmarks.clients.rooms"


@dataclass(frozen=True, kw_only=True)
class RoomRun:
    """Figures of one run: memory in bytes, times in milliseconds."""

    growth: int
    owed: float
    p50: float
    p99: float


def run_room(data: Data, target: TurnTarget, turns: int, stalled: int) -> RoomRun:
    """Ask a number of times, with a number of members who do not read."""
    (server,) = target.servers
    readers = data.members[: READERS + stalled]
    order = RoomOrder(
        chat=data.room,
        members=[(server.port, key) for key in readers],
        asker=(server.port, data.token),
        text=TEXT * WORDS,
        stalled=stalled,
        turns=turns,
    )
    with turn_runs.client(order, CLIENT) as process:
        turn_runs.read_line(process)
        before = gauges.pss_bytes(server.pid)
        turn_runs.read_line(process)
        growth = gauges.pss_bytes(server.pid) - before
        turn_runs.go_on(process)
        result = json.loads(turn_runs.read_line(process))
    return RoomRun(
        growth=growth,
        owed=result["bytes"] / READERS,
        p50=result["answered_ms"]["p50"],
        p99=result["answered_ms"]["p99"],
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run with and without the slow reader in shuffled turns."""
    parser = results.parser("slow_reader", __doc__)
    parser.add_argument("--megabytes", type=float, default=20.0, metavar="N", help="owed (20)")
    parser.set_defaults(database=["sqlite"], rounds=4)
    options = parser.parse_args(arguments)
    # Each turn sends about three times its text: question, deltas, answer.
    turns = max(1, round(options.megabytes * 1e6 / (3 * len(TEXT) * WORDS)))
    settings = {"UAMP_STALL_SECONDS": "600", **results.settings_of(options)}
    plan = servers.SeedPlan(members=READERS + 1, room_agent=AGENT)
    with results.Results("slow_reader", options.results) as report, ExitStack() as stack:
        for database in results.databases_of(options):
            data = stack.enter_context(servers.prepared(database, plan, settings))
            server = stack.enter_context(servers.serving(servers.of_ours(data)))
            target = turn_runs.ours(data, server)
            # Warm up: buffers and caches reach their final size.
            run_room(data, target, turns, 0)
            cells = {
                "all read": partial(run_room, data, target, turns, 0),
                "one does not": partial(run_room, data, target, turns, 1),
            }
            runs = measure(cells, options.rounds)
            print(f"{database:16}{'owed MB':>9}{'growth MiB':>26}{'p50 ms':>9}{'p99 ms':>9}")
            for name, cell_runs in runs.items():
                growth = spread([run.growth / MIB for run in cell_runs])
                owed, p50, p99 = (
                    spread([getattr(run, field) for run in cell_runs]).median
                    for field in ("owed", "p50", "p99")
                )
                print(f"{name:16}{owed / 1e6:>9.1f}{growth!s:>26}{p50:>9.0f}{p99:>9.0f}")
            healthy, slow = runs.values()
            more = spread([(a.growth - b.growth) / MIB for a, b in zip(slow, healthy, strict=True)])
            later = ratio([run.p99 for run in slow], [run.p99 for run in healthy])
            print(f"{database}: {more} MiB more; p99 of the readers {later} x")
            report.add(f"slow_reader.{database}.growth", more, "MiB")
            report.add(f"slow_reader.{database}.p99", later)
