"""Runs of turns against one target, and the cost per turn."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from benchmarks import AGENT, gauges, servers
from benchmarks.clients.turns import Order

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.clients.joins import JoinOrder
    from benchmarks.clients.rooms import RoomOrder
    from benchmarks.clients.users import UserOrder
    from benchmarks.gauges import Backends
    from benchmarks.servers import Data, Server

# 20 words, which the echo agent repeats in 20 deltas.
TEXT: Final = " ".join(f"word{number:02}" for number in range(1, 21))
WARM_SECONDS: Final = 0.5


@dataclass(frozen=True, kw_only=True)
class TurnTarget:
    """The target of a measurement: processes that share the sockets, and a client's order.

    `order` has everything except the port, the number of sockets and the times.
    """

    servers: Sequence[Server]
    order: Order
    backends: Backends | None = None

    def cpu(self) -> tuple[float, float, float]:
        """Return the CPU seconds so far: processes, their writer threads, PostgreSQL."""
        pids = [server.pid for server in self.servers]
        return (
            sum(gauges.cpu_seconds(pid) for pid in pids),
            sum(gauges.thread_seconds(pid, gauges.WRITER_THREAD) for pid in pids),
            self.backends.cpu_seconds() if self.backends else 0.0,
        )


@dataclass(frozen=True, kw_only=True)
class Turns:
    """Figures of a run; times in milliseconds, CPU in milliseconds per turn.

    `web_cpu` is that of the server processes, `writer_cpu` the share of their writer threads, and
    `database_cpu` that of the PostgreSQL backends.
    """

    sockets: int
    turns: int
    web_cpu: float
    writer_cpu: float
    database_cpu: float
    per_second: float
    p50: float
    p95: float
    first_p50: float
    after_model_p50: float
    recorded: Sequence[str]

    @property
    def cpu(self) -> float:
        """The total cost of a turn on the server's side."""
        return self.web_cpu + self.database_cpu

    @property
    def store_cpu(self) -> float:
        """The cost of storing: the writer thread, which talks to the database, and the database."""
        return self.writer_cpu + self.database_cpu


@contextmanager
def client(
    order: Order | RoomOrder | JoinOrder | UserOrder, module: str = "benchmarks.clients.turns"
) -> Iterator[subprocess.Popen[str]]:
    """Run a client process with an order."""
    process = subprocess.Popen(  # noqa: S603 our own interpreter
        [sys.executable, "-m", module],
        cwd=servers.ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        if process.stdin is None:
            raise RuntimeError("the client has no input")
        process.stdin.write(json.dumps(asdict(order)) + "\n")
        process.stdin.flush()
        yield process
    finally:
        process.communicate()


def go_on(process: subprocess.Popen[str]) -> None:
    """Send the line that a client waits for."""
    if process.stdin is None:
        raise RuntimeError("the client has no input")
    process.stdin.write("\n")
    process.stdin.flush()


def read_line(process: subprocess.Popen[str]) -> str:
    """Return a client's next line; raises RuntimeError if it failed."""
    line = process.stdout.readline() if process.stdout else ""
    if not line:
        raise RuntimeError("the client failed; it says above why")
    return line.strip()


def order_for(data: Data, *, agent: str = AGENT, **fields: Any) -> Order:
    """Return an order for sessions with an agent."""
    return Order(port=0, token=data.token, session={"agent": agent}, text=TEXT, **fields)


def ours(data: Data, *running: Server, agent: str = AGENT) -> TurnTarget:
    """Return our server as a target."""
    return TurnTarget(servers=running, order=order_for(data, agent=agent), backends=data.backends)


def run_turns(
    target: TurnTarget,
    sockets: int,
    seconds: float,
    *,
    warm: float = WARM_SECONDS,
    record: bool = False,
) -> Turns:
    """Run turns for some seconds, with the sockets distributed over the target's processes."""
    shares = [
        sockets // len(target.servers) + (place < sockets % len(target.servers))
        for place in range(len(target.servers))
    ]
    with ExitStack() as stack:
        clients = [
            stack.enter_context(
                client(
                    replace(
                        target.order,
                        port=server.port,
                        sockets=share,
                        warm=warm,
                        seconds=seconds,
                        record=record,
                    )
                )
            )
            for server, share in zip(target.servers, shares, strict=True)
            if share
        ]
        for process in clients:
            read_line(process)
        before = target.cpu()
        for process in clients:
            read_line(process)
        after = target.cpu()
        results = [json.loads(read_line(process)) for process in clients]
    turns = sum(result["turns"] for result in results)
    web, writer, database = (
        (late - early) * 1000 / max(1, turns) for early, late in zip(before, after, strict=True)
    )
    slowest = max(results, key=lambda result: float(result["latency_ms"]["p50"]))
    return Turns(
        sockets=sockets,
        turns=turns,
        web_cpu=web,
        writer_cpu=writer,
        database_cpu=database,
        per_second=sum(result["turns"] / result["seconds"] for result in results),
        p50=slowest["latency_ms"]["p50"],
        p95=slowest["latency_ms"]["p95"],
        first_p50=slowest["first_delta_ms"]["p50"],
        after_model_p50=slowest["after_model_ms"]["p50"],
        recorded=results[0]["recorded"],
    )


def record_turn(target: TurnTarget) -> list[str]:
    """Return the frames of one turn, for the floor to send."""
    for seconds in (0.2, 2, 20):
        recorded = run_turns(target, 1, seconds, warm=0.2, record=True).recorded
        ends = [i for i, frame in enumerate(recorded) if '"response.done"' in frame[:40]]
        if len(ends) > 1:
            return list(recorded[ends[0] + 1 : ends[1] + 1])
    raise RuntimeError("The server did not answer twice within 20 seconds.")
