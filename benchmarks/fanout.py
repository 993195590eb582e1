"""What a frame for one member of a chat costs: `python -m benchmarks.fanout --help`.

N sockets follow one chat; one more asks an agent that sends a word every INTERVAL seconds. The
figure is the CPU of the server process, in microseconds per delta that a reader received. With
`--processes 2` the asker is on another process, and the messages come over Redis.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import uuid
from contextlib import ExitStack
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final

from benchmarks import gauges, parts, servers
from benchmarks.client import Order, Socket, open_sockets, say

if TYPE_CHECKING:
    from collections.abc import Sequence

WARM_SECONDS: Final = 2.0
LOCAL_REDIS: Final = "redis://127.0.0.1:6379/0"


class Reader(Socket):
    """A socket that counts the deltas that it receives."""

    def __init__(self, order: Order, number: int) -> None:
        super().__init__(order, number)
        self.deltas = 0

    def _event(self, payload: bytearray) -> None:
        if payload.startswith(b'{"type":"response.delta"'):
            self.deltas += 1
            return
        super()._event(payload)


async def read(order: Order, asker_port: int) -> None:
    """Open the sockets, ask on one of them and print how many deltas the others received."""
    readers = await open_sockets(order, Reader)
    (asker,) = await open_sockets(replace(order, sockets=1, port=asker_port), Reader)
    asker.ask()
    await asyncio.sleep(order.warm)
    say("begin")
    before = sum(reader.deltas for reader in readers)
    await asyncio.sleep(order.seconds)
    after = sum(reader.deltas for reader in readers)
    say("end")
    say(json.dumps({"deltas": after - before}))
    for socket in [*readers, asker]:
        socket.close()


def measure(
    data: servers.Data, environment: dict[str, str], *, processes: int, order: Order
) -> tuple[float, int]:
    """Run once; return microseconds of CPU per delta, and how many there were."""
    with ExitStack() as stack:
        started = [
            stack.enter_context(servers.serving("uvicorn", environment)) for _ in range(processes)
        ]
        reading, asking = started[0], started[-1]
        order = replace(order, port=reading.port, token=data.token)
        client = subprocess.Popen(  # noqa: S603 our own interpreter
            [sys.executable, "-m", "benchmarks.fanout", "--client", str(asking.port)],
            cwd=servers.ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if client.stdin is None:
            raise RuntimeError("the client has no input")
        client.stdin.write(json.dumps(asdict(order)) + "\n")
        client.stdin.flush()
        parts.heard(client)
        before = gauges.cpu_seconds(reading.pid)
        parts.heard(client)
        used = gauges.cpu_seconds(reading.pid) - before
        deltas = json.loads(parts.heard(client))["deltas"]
        client.communicate()
    return used * 1e6 / max(1, deltas), deltas


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fanout", description=__doc__)
    parser.add_argument("--readers", type=int, nargs="+", default=[100], metavar="N")
    parser.add_argument("--interval", type=float, default=0.03, metavar="SECONDS")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--processes", type=int, choices=[1, 2], default=1)
    parser.add_argument("--redis", default=os.environ.get("TEST_REDIS_URL", LOCAL_REDIS))
    parser.add_argument("--profile", metavar="FILE", help="write the server's cProfile data")
    parser.add_argument("--client", type=int, metavar="PORT", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.client:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        asyncio.run(read(Order(**json.loads(sys.stdin.readline())), chosen.client))
        return
    settings: dict[str, Any] = {"BENCH_DRIPS": str(round(chosen.interval * 1000))}
    if chosen.profile:
        settings["BENCH_PROFILE"] = chosen.profile
    words = int((WARM_SECONDS + chosen.seconds) / chosen.interval * 1.3) + 10
    with servers.data("sqlite", 1, settings) as data:
        environment = dict(data.environment)
        if chosen.processes > 1:
            environment |= {"REDIS_URL": chosen.redis, "REDIS_PREFIX": f"bench{uuid.uuid4().hex}"}
        for readers in chosen.readers:
            order = Order(
                port=0,
                session={"chat": data.chats[1]},
                text=" ".join(f"word{number:04}" for number in range(words)),
                sockets=readers,
                warm=WARM_SECONDS,
                seconds=chosen.seconds,
            )
            costs = []
            for _ in range(chosen.runs):
                cost, deltas = measure(data, environment, processes=chosen.processes, order=order)
                costs.append(cost)
                print(f"  {cost:.0f} us a delta, {deltas} deltas, load {os.getloadavg()[0]:.1f}")
            print(
                f"{chosen.processes} process(es), {readers} readers:"
                f" {statistics.median(costs):.0f} us a delta ({min(costs):.0f}-{max(costs):.0f})"
            )


if __name__ == "__main__":
    main()
