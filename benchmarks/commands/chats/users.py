"""The cost of people who use their browsers: processors, memory, and waiting times.

A user has one page open: a socket in a chat of 20 people that watches the others of the person.
On average once a minute, a user types for three seconds and writes a message, which the other 19
receive, and once a minute opens a chat: reads its last 50 messages over REST and sends a receipt.
Every fifth message asks the agent of the chat, which streams 200 words for six seconds to all of
them.

Two server processes share PostgreSQL and Redis; on SQLite there is one. The cost is that of all of
these programs, not of the client, which runs on the same machine. `cores` is the number of
processors that 1,000 such users keep busy, `kB` the memory that each adds to the server processes.
"""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from benchmarks import gauges, results, servers, turn_runs
from benchmarks.clients.users import UserOrder
from benchmarks.rounds import measure, spread
from tests import services

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.servers import Data
    from benchmarks.turn_runs import TurnTarget

CLIENT: Final = "benchmarks.clients.users"
ROOM_SIZE: Final = 20
EVERY_MS: Final = 30
AGENT: Final = f"drip-{EVERY_MS}"
WARM_SECONDS: Final = 15.0
DELAYS: Final = ("stored", "shown", "first_words", "opened")


@dataclass(frozen=True, kw_only=True)
class UsersRun:
    """Figures of a run: processors, kB per user, and the 95th percentiles of delays in ms."""

    web: float
    database: float
    redis: float
    memory: float
    events: float
    delays: Mapping[str, float]
    messages: int


def run_users(data: Data, target: TurnTarget, users: int, seconds: float, redis: int) -> UsersRun:
    """Have some of the people use the server; `redis` is the process of Redis, 0 without it."""
    ports = [server.port for server in target.servers]
    order = UserOrder(
        people=[
            (ports[number % len(ports)], key, data.rooms[number // ROOM_SIZE])
            for number, key in enumerate(data.members[:users])
        ],
        agent=AGENT,
        warm=WARM_SECONDS,
        seconds=seconds,
    )
    pids = [server.pid for server in target.servers]
    empty = sum(gauges.pss_bytes(pid) for pid in pids)
    with turn_runs.client(order, CLIENT) as process:
        turn_runs.read_line(process)
        before = target.cpu(), gauges.cpu_seconds(redis) if redis else 0.0
        turn_runs.read_line(process)
        after = target.cpu(), gauges.cpu_seconds(redis) if redis else 0.0
        full = sum(gauges.pss_bytes(pid) for pid in pids)
        turn_runs.go_on(process)
        result = json.loads(turn_runs.read_line(process))
    return UsersRun(
        web=(after[0][0] - before[0][0]) / seconds,
        database=(after[0][2] - before[0][2]) / seconds,
        redis=(after[1] - before[1]) / seconds,
        memory=max(0, full - empty) / users / 1000,
        events=result["events"] / users / seconds,
        delays={name: result[name]["p95"] for name in DELAYS},
        messages=result["stored"]["count"],
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run each number of users and print what they cost."""
    parser = results.parser("users", __doc__)
    parser.add_argument(
        "--users", type=int, nargs="+", default=[100, 300], metavar="N", help="(100 300)"
    )
    parser.set_defaults(seconds=60.0, rounds=1)
    options = parser.parse_args(arguments)
    members = max(options.users)
    plan = servers.SeedPlan(members=members, room_agent=AGENT, room_size=ROOM_SIZE)
    settings = {"BENCH_DRIPS": str(EVERY_MS), **results.settings_of(options)}
    redis_url = services.running_redis()
    with results.Results("users", options.results) as report, ExitStack() as stack:
        cells = {}
        for database in results.databases_of(options):
            crossing: Mapping[str, str] = {}
            if database == "postgresql" and redis_url:
                crossing = {"REDIS_URL": redis_url, "REDIS_PREFIX": f"bench{os.getpid()}"}
            data = stack.enter_context(servers.prepared(database, plan, {**settings, **crossing}))
            running = [
                stack.enter_context(servers.serving(servers.of_ours(data)))
                for _ in range(2 if crossing else 1)
            ]
            redis = gauges.redis_pid(redis_url) if crossing and redis_url else 0
            target = turn_runs.ours(data, *running)
            for users in options.users:
                cells[f"{database}.{users}"] = partial(
                    run_users, data, target, users, options.seconds, redis
                )
        runs = measure(cells, options.rounds)
        print(
            f"{'database.users':18}{'web':>18}{'database':>18}{'Redis':>18}{'kB a user':>18}"
            f"{'cores for 1,000':>18}   p95 ms: {', '.join(DELAYS)}"
        )
        for name, rows in runs.items():
            users = int(name.split(".")[1])
            figures = {
                "web": (spread([run.web for run in rows]), "cores"),
                "database": (spread([run.database for run in rows]), "cores"),
                "redis": (spread([run.redis for run in rows]), "cores"),
                "memory": (spread([run.memory for run in rows]), "kB"),
                "cores": (
                    spread([(run.web + run.database + run.redis) * 1000 / users for run in rows]),
                    "cores",
                ),
            }
            delays = {delay: spread([run.delays[delay] for run in rows]) for delay in DELAYS}
            columns = "".join(f"{figure!s:>18}" for figure, _ in figures.values())
            print(f"{name:18}{columns}   {', '.join(str(delay) for delay in delays.values())}")
            for figure_name, (figure, unit) in figures.items():
                report.add(f"users.{name}.{figure_name}", figure, unit)
            for delay, figure in delays.items():
                report.add(f"users.{name}.{delay}", figure, "ms")
