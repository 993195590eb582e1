"""Connect many daemons to two server processes, and see how soon they are back after a restart.

`--daemons` sockets register `--agents` agents each, half of them at either process (PostgreSQL and
Redis). Then one process is killed (SIGKILL), and its daemons reconnect to the other one. It is
started again, and both are killed and started at the same time. A daemon tries again every quarter
of a second, each time at the other process; at most 32 connect at once. Memory is the proportional
set size of both server processes; CPU covers them and PostgreSQL.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from benchmarks import gauges, results, servers, turn_runs
from benchmarks.clients.daemons import DaemonOrder
from benchmarks.rounds import spread
from tests import services

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.servers import Data, Server, ServerProgram

LIMITS: Final = {
    "UAMP_CONNECTED_AGENTS": "1000000",
    "UAMP_DAEMON_ANSWERS": "1000",
    "UAMP_REMOTE_ALLOW_HOSTS": "127.0.0.1:*",
}
SETTLE_SECONDS: Final = 2


@contextmanager
def daemons(order: DaemonOrder) -> Iterator[subprocess.Popen[str]]:
    """Run daemons until the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.clients.daemons"],
        cwd=servers.ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        if process.stdin is None:
            raise RuntimeError("the daemons have no input")
        process.stdin.write(json.dumps(asdict(order)) + "\n")
        process.stdin.flush()
        yield process
    finally:
        process.kill()
        process.communicate()


def seconds_until(process: subprocess.Popen[str], word: str) -> float:
    """Read the word that the daemons print, and return the seconds printed with it."""
    state, _, seconds = turn_runs.read_line(process).partition(" ")
    if state != word:
        raise RuntimeError(f"the daemons are {state}, not {word}")
    return float(seconds)


def settings_of(overrides: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of two processes on Redis; exits if none answers."""
    redis_url = services.running_redis()
    if redis_url is None:
        raise SystemExit("No Redis answers; set TEST_REDIS_URL.")
    prefix = {"REDIS_URL": redis_url, "REDIS_PREFIX": f"bench{os.getpid()}"}
    return {**LIMITS, **prefix, **overrides}


def main(arguments: Sequence[str] | None = None) -> None:
    """Register the daemons, and kill the processes."""
    parser = results.parser("daemons", __doc__)
    parser.add_argument("--daemons", type=int, default=1000, metavar="N")
    parser.add_argument("--agents", type=int, default=10, metavar="N", help="of each daemon")
    parser.set_defaults(database=["postgresql"])
    options = parser.parse_args(arguments)
    settings = settings_of(results.settings_of(options))
    with results.Results("daemons", options.results) as report, ExitStack() as stack:
        (database,) = results.databases_of(options)
        plan = servers.SeedPlan(connected=[("many", options.daemons, options.agents)])
        data = stack.enter_context(servers.prepared(database, plan, settings=settings))
        ports = [servers.free_port(), servers.free_port()]
        order = DaemonOrder(
            ports=ports,
            tokens=list(data.connected["many"]),
            prefix="many",
            daemons=options.daemons,
            agents=options.agents,
        )
        DaemonPhases(report, data, order, stack).run()


class DaemonPhases:
    """One run; each phase prints what it found."""

    def __init__(
        self, report: results.Results, data: Data, order: DaemonOrder, stack: ExitStack
    ) -> None:
        self._report, self._data, self._order, self._stack = report, data, order, stack
        self._program: ServerProgram = servers.of_ours(data)
        self._count = order.daemons * order.agents

    def run(self) -> None:
        """Register all, kill one process, then both."""
        pair = [self._serve(port) for port in self._order.ports]
        before = _memory(pair)
        used = self._cpu(pair)
        with daemons(self._order) as process:
            ready = seconds_until(process, "ready")
            cpu_seconds = (self._cpu(pair) - used) / self._count
            time.sleep(SETTLE_SECONDS)
            grown = _memory(pair) - before
            self._show("registered", ready, "s", "daemons.ready")
            self._show("CPU of a registration", cpu_seconds * 1000, "ms", "daemons.cpu")
            self._show("memory without daemons", before / 2**20, "MiB", "daemons.empty")
            self._show("memory of an agent", grown / self._count / 1024, "KiB", "daemons.agent")
            socket = grown / self._order.daemons / 1024
            self._show("memory of a socket with its agents", socket, "KiB", "daemons.socket")

            os.kill(pair[1].pid, signal.SIGKILL)
            back = seconds_until(process, "back")
            time.sleep(SETTLE_SECONDS)
            self._show("one killed, all back at the other", back, "s", "daemons.back")
            alone = _memory(pair[:1]) / 2**20
            self._show("memory of the other one then", alone, "MiB", "daemons.alone")

            pair[1] = self._serve(self._order.ports[1])
            for server in pair:
                os.kill(server.pid, signal.SIGKILL)
            pair = [self._serve(port) for port in self._order.ports]
            served_at = time.perf_counter()
            restart = seconds_until(process, "back")
            self._show("both killed and started, all back", restart, "s", "daemons.restart")
            after = time.perf_counter() - served_at
            self._show("of that, after both were ready", after, "s", "daemons.after_start")

    def _serve(self, port: int) -> Server:
        return self._stack.enter_context(servers.serving(self._program, port))

    def _cpu(self, pair: Sequence[Server]) -> float:
        backends = self._data.backends
        database = 0.0 if backends is None else backends.cpu_seconds()
        return database + sum(gauges.cpu_seconds(server.pid) for server in pair)

    def _show(self, what: str, value: float, unit: str, name: str) -> None:
        print(f"{what:38}{value:>10.1f} {unit}", flush=True)
        self._report.add(name, spread([value]), unit)


def _memory(running: Sequence[Server]) -> int:
    return sum(gauges.pss_bytes(server.pid) for server in running)
