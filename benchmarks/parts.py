"""What is measured: turns, the memory of idle sessions, and opening chats."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from benchmarks import AGENT, gauges, servers
from benchmarks.client import Order, quantiles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.servers import Data, Server

# 20 words: the echo agent says them back in 20 deltas.
TEXT: Final = " ".join(f"word{number:02}" for number in range(1, 21))
OPENINGS: Final = 40
SETTLE_SECONDS: Final = 1.0


@dataclass(frozen=True, kw_only=True)
class Turns:
    """One cell of the turn table; times in milliseconds, CPU per turn."""

    sockets: int
    web_cpu: float
    database_cpu: float
    per_second: float
    p50: float
    p95: float
    first_p50: float
    first_p95: float
    recorded: Sequence[str]

    @property
    def cpu(self) -> float:
        """Everything that a turn costs on the server's side."""
        return self.web_cpu + self.database_cpu


@contextmanager
def client(order: Order) -> Iterator[subprocess.Popen[str]]:
    """Run the client process with an order."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.client"],
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


def heard(process: subprocess.Popen[str]) -> str:
    """Return the next line of the client."""
    line = process.stdout.readline() if process.stdout else ""
    if not line:
        raise RuntimeError("the client failed; it says above why")
    return line.strip()


def order_for(server: Server, data: Data, *, agent: str = AGENT, **fields: Any) -> Order:
    """Return an order for sessions with a scripted agent."""
    return Order(port=server.port, token=data.token, session={"agent": agent}, **fields)


def run_turns(server: Server, data: Data, order: Order) -> Turns:
    """Run one cell."""
    with client(order) as process:
        heard(process)
        web, database = _cpu(server, data)
        heard(process)
        web_after, database_after = _cpu(server, data)
        result = json.loads(heard(process))
    turns = max(1, result["turns"])
    return Turns(
        sockets=order.sockets,
        web_cpu=(web_after - web) * 1000 / turns,
        database_cpu=(database_after - database) * 1000 / turns,
        per_second=result["turns"] / result["seconds"],
        p50=result["latency_ms"]["p50"],
        p95=result["latency_ms"]["p95"],
        first_p50=result["first_delta_ms"]["p50"],
        first_p95=result["first_delta_ms"]["p95"],
        recorded=result["recorded"],
    )


def _cpu(server: Server, data: Data) -> tuple[float, float]:
    database = data.backends.cpu_seconds() if data.backends else 0.0
    return gauges.cpu_seconds(server.pid), database


def record_turn(server: Server, data: Data) -> list[str]:
    """Return the frames of one turn, for the floor to send."""
    turns = run_turns(
        server, data, order_for(server, data, text=TEXT, warm=0.2, seconds=0.1, record=True)
    )
    ends = [i for i, frame in enumerate(turns.recorded) if '"response.done"' in frame[:40]]
    return list(turns.recorded[ends[0] + 1 : ends[1] + 1])


def run_floor(frames: Sequence[str], data: Data, sockets: Sequence[int], seconds: float) -> Any:
    """Run the same cells against the bare application; return Turns by number of sockets."""
    path = data.folder / "frames.json"
    path.write_text(json.dumps(frames))
    with servers.serving("floor", {**os.environ, "BENCH_FRAMES": str(path)}) as floor:
        return {
            count: run_turns(
                floor, data, order_for(floor, data, text=TEXT, sockets=count, seconds=seconds)
            )
            for count in sockets
        }


def idle_memory(server: Server, data: Data, count: int) -> float:
    """Return how much the server's memory grows with idle sessions, in bytes per session."""
    run_turns(server, data, order_for(server, data, text=TEXT, sockets=8, warm=0.5, seconds=0.5))
    time.sleep(SETTLE_SECONDS)
    before = gauges.pss_bytes(server.pid)
    with client(order_for(server, data, sockets=count)) as process:
        heard(process)
        time.sleep(SETTLE_SECONDS)
        return (gauges.pss_bytes(server.pid) - before) / count


def open_history(server: Server, data: Data, chat_id: str) -> dict[str, float]:
    """Return the times, in milliseconds, of the newest page of a chat's messages over REST."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    times = []
    for _ in range(OPENINGS):
        began = time.perf_counter()
        connection.request(
            "GET",
            f"/api/v1/chats/{chat_id}/messages?order=desc",
            headers={"Authorization": f"Bearer {data.token}"},
        )
        answer = connection.getresponse()
        body = answer.read()
        times.append(time.perf_counter() - began)
        if answer.status != http.HTTPStatus.OK:
            raise RuntimeError(body.decode())
    connection.close()
    return quantiles(times[OPENINGS // 4 :])


def open_session(server: Server, data: Data, chat_id: str) -> dict[str, float]:
    """Return the times, in milliseconds, from connecting to an open session in a chat."""
    order = Order(
        port=server.port,
        token=data.token,
        session={"chat": chat_id},
        sockets=OPENINGS,
        at_once=1,
    )
    with client(order) as process:
        heard(process)
        times: dict[str, float] = json.loads(heard(process))
    return times
