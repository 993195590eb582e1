"""Two server processes against one, on PostgreSQL and Redis.

Each process has its own sockets with private chats. `turns/s` is the measured throughput, which
cannot double on a machine whose cores are busy with clients, PostgreSQL and other work. `capacity`
is the throughput if every process had a core: the number of processes, times the cost of a turn in
one process, divided by its cost in each of several. Rounds are shuffled.
"""

from __future__ import annotations

import os
import statistics
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from benchmarks import results, servers, turn_runs
from benchmarks.rounds import measure, ratio
from benchmarks.turn_runs import TurnTarget
from tests import services

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one process and several in shuffled turns."""
    parser = results.parser("workers", __doc__)
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="processes (2)")
    parser.add_argument("--sockets", type=int, default=32, metavar="N", help="of each process")
    parser.set_defaults(database=["postgresql"])
    options = parser.parse_args(arguments)
    redis_url = services.running_redis()
    if redis_url is None:
        raise SystemExit("No Redis answers; set TEST_REDIS_URL.")
    settings = {
        "REDIS_URL": redis_url,
        "REDIS_PREFIX": f"bench{os.getpid()}",
        **results.settings_of(options),
    }
    with results.Results("workers", options.results) as report, ExitStack() as stack:
        (database,) = results.databases_of(options)
        data = stack.enter_context(servers.prepared(database, settings=settings))
        running = [
            stack.enter_context(servers.serving(servers.of_ours(data)))
            for _ in range(options.workers)
        ]
        single = turn_runs.ours(data, running[0])
        several = TurnTarget(servers=running, order=single.order, backends=data.backends)
        cells = {
            "1 process": partial(turn_runs.run_turns, single, options.sockets, options.seconds),
            f"{options.workers} processes": partial(
                turn_runs.run_turns, several, options.sockets * options.workers, options.seconds
            ),
        }
        runs = measure(cells, options.rounds)
        print(f"{'':14}{'turns/s':>9}{'CPU ms/turn':>13}{'web':>7}{'database':>10}")
        for name, cell_runs in runs.items():
            values = [
                statistics.median(getattr(turns, field) for turns in cell_runs)
                for field in ("per_second", "cpu", "web_cpu", "database_cpu")
            ]
            print(
                f"{name:14}{values[0]:>9.0f}{values[1]:>13.2f}{values[2]:>7.2f}{values[3]:>10.2f}"
            )
        alone, together = runs.values()
        out = ratio([turns.per_second for turns in together], [turns.per_second for turns in alone])
        capacity = ratio(
            [options.workers * turns.web_cpu for turns in alone],
            [turns.web_cpu for turns in together],
        )
        print(f"turns/s: {out} x one process; capacity: {capacity} x one process")
        report.add(f"workers.{options.workers}.turns", out)
        report.add(f"workers.{options.workers}.capacity", capacity)
