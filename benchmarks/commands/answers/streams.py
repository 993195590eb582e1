"""Many concurrent streaming responses: `python -m benchmarks streams --help`.

A scripted agent sends a word every INTERVAL seconds to each of N sockets. Measures the gaps between
the deltas of a response as its client sees them, against the provider's own interval, and the
resources of the server process. The client is a separate process and parses no frames.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from benchmarks import gauges, servers, turn_runs
from benchmarks.clients.turns import Order, Socket, open_sockets, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.servers import Data, Server

WARM_SECONDS: Final = 10.0
SETTLE_SECONDS: Final = 1.0
HEAD: Final = (
    f"{'responses':>10}{'interval':>10}{'gap p50 ms':>12}{'p95':>8}{'p99':>8}{'max':>8}"
    f"{'deltas/s':>10}{'of due':>8}{'CPU %':>7}{'us/delta':>10}{'db %':>6}"
    f"{'MiB before':>12}{'idle':>7}{'peak':>7}{'KiB/socket':>12}{'/response':>11}"
)


@dataclass(frozen=True, kw_only=True)
class StreamsRow:
    """One line of the table; gaps in milliseconds, memory (PSS) in bytes."""

    responses: int
    interval: float
    gaps: dict[str, float]
    per_second: float
    cpu: float
    database_cpu: float
    before: int
    idle: int
    peak: int


class StreamSocket(Socket):
    """A socket that records when each delta arrives."""

    def __init__(self, order: Order, number: int) -> None:
        super().__init__(order, number)
        self.times: list[float] = []

    def _event(self, payload: bytearray) -> None:
        if payload.startswith(b'{"type":"response.delta"'):
            self.times.append(time.perf_counter())
            return
        super()._event(payload)


async def stream(order: Order) -> None:
    """Open the sockets, wait for a line, ask on all of them and print the gaps."""
    sockets = await open_sockets(order, StreamSocket)
    loop = asyncio.get_running_loop()
    say("open")
    await asyncio.to_thread(sys.stdin.readline)
    for number, socket in enumerate(sockets):
        # Spread the phases: clients ask at different times.
        loop.call_later(order.warm * 0.7 * number / len(sockets), socket.ask)
    await asyncio.sleep(order.warm)
    say("begin")
    start = time.perf_counter()
    await asyncio.sleep(order.seconds)
    ended = time.perf_counter()
    say("end")
    gaps: list[float] = []
    deltas = 0
    for socket in sockets:
        inside = [at for at in socket.times if start <= at <= ended]
        deltas += len(inside)
        gaps += [later - at for at, later in pairwise(inside)]
    cuts = statistics.quantiles(gaps, n=100, method="inclusive")
    gap_figures = {"p50": cuts[49], "p95": cuts[94], "p99": cuts[98], "max": max(gaps)}
    say(json.dumps({"gaps": gap_figures, "deltas": deltas, "seconds": ended - start}))
    for socket in sockets:
        socket.close()


def run_streams(
    server: Server, data: Data, *, responses: int, interval: float, seconds: float
) -> StreamsRow:
    """Run one line of the table; the server must be fresh."""
    turn_runs.run_turns(turn_runs.ours(data, server), 8, 0.5)
    time.sleep(SETTLE_SECONDS)
    before = gauges.pss_bytes(server.pid)
    words = int((WARM_SECONDS + seconds) / interval * 1.2) + 5
    order = Order(
        port=server.port,
        token=data.token,
        session={"agent": f"drip-{round(interval * 1000)}"},
        text=" ".join(f"word{number:04}" for number in range(words)),
        sockets=responses,
        warm=WARM_SECONDS,
        seconds=seconds,
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.commands.answers.streams", "--client"],
        cwd=servers.ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    if process.stdin is None:
        raise RuntimeError("the client has no input")
    process.stdin.write(json.dumps(asdict(order)) + "\n")
    process.stdin.flush()
    turn_runs.read_line(process)
    time.sleep(SETTLE_SECONDS)
    idle = gauges.pss_bytes(server.pid)
    process.stdin.write("\n")
    process.stdin.flush()
    turn_runs.read_line(process)
    cpu, database = _cpu(server, data)
    turn_runs.read_line(process)
    cpu_after, database_after = _cpu(server, data)
    peak = gauges.pss_bytes(server.pid)
    result = json.loads(turn_runs.read_line(process))
    process.communicate()
    return StreamsRow(
        responses=responses,
        interval=interval,
        gaps={name: value * 1000 for name, value in result["gaps"].items()},
        per_second=result["deltas"] / result["seconds"],
        cpu=(cpu_after - cpu) / result["seconds"],
        database_cpu=(database_after - database) / result["seconds"],
        before=before,
        idle=idle,
        peak=peak,
    )


def _cpu(server: Server, data: Data) -> tuple[float, float]:
    database = data.backends.cpu_seconds() if data.backends else 0.0
    return gauges.cpu_seconds(server.pid), database


def _print(row: StreamsRow) -> None:
    due = row.responses / row.interval
    print(
        f"{row.responses:>10}{row.interval * 1000:>7.0f} ms"
        f"{row.gaps['p50']:>12.1f}{row.gaps['p95']:>8.1f}{row.gaps['p99']:>8.1f}"
        f"{row.gaps['max']:>8.0f}{row.per_second:>10.0f}{row.per_second / due:>8.2f}"
        f"{row.cpu * 100:>7.0f}{row.cpu * 1e6 / row.per_second:>10.0f}"
        f"{row.database_cpu * 100:>6.0f}"
        f"{row.before / 2**20:>12.0f}{row.idle / 2**20:>7.0f}{row.peak / 2**20:>7.0f}"
        f"{(row.idle - row.before) / row.responses / 1024:>12.0f}"
        f"{(row.peak - row.idle) / row.responses / 1024:>11.0f}"
    )
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks streams", description=__doc__)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--responses", type=int, nargs="+", default=[100, 1000], metavar="N")
    parser.add_argument("--interval", type=float, nargs="+", default=[0.2], metavar="SECONDS")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--profile", metavar="FILE", help="write the server's cProfile data")
    parser.add_argument("--client", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.client:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        asyncio.run(stream(Order(**json.loads(sys.stdin.readline()))))
        return
    settings: dict[str, Any] = dict(pair.split("=", 1) for pair in options.set)
    settings["BENCH_DRIPS"] = " ".join(str(round(value * 1000)) for value in options.interval)
    if options.profile:
        settings["BENCH_PROFILE"] = options.profile
    with servers.prepared(options.database, settings=settings) as data:
        print(f"{options.database}, {options.seconds:.0f} s a line, PSS of the server\n{HEAD}")
        for interval in options.interval:
            for responses in options.responses:
                with servers.serving(servers.of_ours(data)) as server:
                    _print(
                        run_streams(
                            server,
                            data,
                            responses=responses,
                            interval=interval,
                            seconds=options.seconds,
                        )
                    )


if __name__ == "__main__":
    main()
