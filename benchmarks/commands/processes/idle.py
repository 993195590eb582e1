"""The CPU of an idle process, and the memory of idle sessions.

CPU is in milliseconds per second, for the server process and its PostgreSQL backends, without
sockets and with idle sessions. Memory is the growth of the process's proportional set size.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from benchmarks import gauges, results, servers, turn_runs
from benchmarks.rounds import spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.turn_runs import TurnTarget

SETTLE_SECONDS = 1.0


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each database separately."""
    parser = results.parser("idle", __doc__)
    parser.add_argument("--sessions", type=int, default=1000, metavar="N")
    parser.set_defaults(seconds=10.0)
    options = parser.parse_args(arguments)
    with results.Results("idle", options.results) as report:
        print(f"{'':14}{'CPU ms/s':>10}{'with sessions':>15}{'KiB a session':>15}")
        for database in results.databases_of(options):
            with ExitStack() as stack:
                data = stack.enter_context(
                    servers.prepared(database, settings=results.settings_of(options))
                )
                server = stack.enter_context(servers.serving(servers.of_ours(data)))
                target = turn_runs.ours(data, server)
                turn_runs.run_turns(target, 8, 0.5)
                alone = _cpu(target, options.seconds)
                before = gauges.pss_bytes(server.pid)
                order = replace(target.order, port=server.port, text="", sockets=options.sessions)
                with turn_runs.client(order) as process:
                    turn_runs.read_line(process)
                    crowded = _cpu(target, options.seconds)
                    size = (gauges.pss_bytes(server.pid) - before) / options.sessions / 1024
            print(f"{database:14}{alone:>10.1f}{crowded:>15.1f}{size:>15.1f}", flush=True)
            report.add(f"idle.{database}.cpu", spread([alone]), "ms/s")
            report.add(f"idle.{database}.cpu_with_sessions", spread([crowded]), "ms/s")
            report.add(f"idle.{database}.session", spread([size]), "KiB")


def _cpu(target: TurnTarget, seconds: float) -> float:
    """Return the target's CPU use while idle, in milliseconds per second."""
    time.sleep(SETTLE_SECONDS)
    before = target.cpu()
    began = time.perf_counter()
    time.sleep(seconds)
    after = target.cpu()
    used = after[0] - before[0] + after[2] - before[2]
    return used * 1000 / (time.perf_counter() - began)
