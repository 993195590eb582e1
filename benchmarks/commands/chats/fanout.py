"""The cost of an answer that streams to 100 members of a chat, in one process and in two.

One member calls a scripted agent that writes a word every 30 ms; the words of each UAMP_COALESCE_MS
are sent to the other members as one frame. With two processes, half of the members are connected to
each, and deltas cross Redis. CPU covers all server processes and PostgreSQL, divided by the words
and frames that the members received; it includes the turn itself and an idle process's own cost.
The floor is a bare ASGI application that sends a frame with one word to as many sockets every 30
ms.
"""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from benchmarks import earlier, results, servers, turn_runs
from benchmarks.clients.rooms import RoomOrder
from benchmarks.clients.turns import Order
from benchmarks.rounds import measure, ratio, spread
from benchmarks.turn_runs import TurnTarget
from tests import services

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.servers import Data

EVERY_MS: Final = 30
# One answer takes about six seconds.
TEXT: Final = " ".join(f"word{number:04}" for number in range(200))
CLIENT: Final = "benchmarks.clients.rooms"


def order_of(data: Data, target: TurnTarget, members: int, seconds: float) -> RoomOrder:
    """Return an order whose members are distributed over the target's processes."""
    ports = [server.port for server in target.servers]
    keys = data.members[:members]
    return RoomOrder(
        chat=data.room,
        members=[(ports[place % len(ports)], key) for place, key in enumerate(keys)],
        asker=(ports[0], data.token),
        text=TEXT,
        seconds=seconds,
    )


@dataclass(frozen=True, kw_only=True)
class AnswerRun:
    """Figures of one run: CPU in microseconds, `behind` in milliseconds.

    `frame` is the CPU per frame and member, `word` the CPU per word and member; a frame has several
    words. `behind` is the 95th percentile of the delay between the asker and a member receiving the
    oldest text of a frame. `wire` is the number of bytes a member received per byte of text.
    """

    frame: float
    word: float
    behind: float
    wire: float


def run_room(target: TurnTarget, order: RoomOrder) -> AnswerRun:
    """Run once."""
    with turn_runs.client(order, CLIENT) as process:
        turn_runs.read_line(process)
        before = target.cpu()
        turn_runs.read_line(process)
        after = target.cpu()
        turn_runs.go_on(process)
        result = json.loads(turn_runs.read_line(process))
    used = after[0] - before[0] + after[2] - before[2]
    return AnswerRun(
        frame=used * 1e6 / max(1, result["deltas"]),
        word=used * 1e6 / max(1, result["words"] * len(order.members) or result["deltas"]),
        behind=result["behind_ms"].get("p95", 0.0),
        wire=result["wire"],
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the cells in shuffled turns and print the cost of a frame."""
    parser = results.parser("fanout", __doc__)
    parser.add_argument("--members", type=int, default=100, metavar="N")
    parser.add_argument("--against", metavar="COMMIT", help="an earlier commit, measured too")
    parser.add_argument("--profile", metavar="FILE", help="write the server's cProfile data")
    parser.set_defaults(seconds=4.0)
    options = parser.parse_args(arguments)
    trees = {"": servers.ROOT}
    if options.against:
        trees["@earlier"] = earlier.tree(options.against)
    settings = {"BENCH_DRIPS": str(EVERY_MS), **results.settings_of(options)}
    if options.profile:
        settings["BENCH_PROFILE"] = options.profile
    plan = servers.SeedPlan(members=options.members, room_agent=f"drip-{EVERY_MS}")
    redis_url = services.running_redis()
    with results.Results("fanout", options.results) as report, ExitStack() as stack:
        stub = servers.of_stub("broadcast", {"BENCH_EVERY_MS": str(EVERY_MS)})
        floor = TurnTarget(
            servers=[stack.enter_context(servers.serving(stub))],
            order=Order(port=0),
        )
        crowd = [(floor.servers[0].port, "")] * options.members
        bare = RoomOrder(chat="", members=crowd, seconds=options.seconds)
        cells = {"bare broadcast": partial(run_room, floor, bare)}
        for database in results.databases_of(options):
            crossing: Mapping[str, str] = {}
            if database == "postgresql" and redis_url:
                crossing = {"REDIS_URL": redis_url, "REDIS_PREFIX": f"bench{os.getpid()}"}
            for mark, tree in trees.items():
                data = stack.enter_context(
                    servers.prepared(database, plan, {**settings, **crossing}, tree)
                )
                for count in (1, 2) if crossing else (1,):
                    running = [
                        stack.enter_context(servers.serving(servers.of_ours(data)))
                        for _ in range(count)
                    ]
                    target = turn_runs.ours(data, *running)
                    order = order_of(data, target, options.members, options.seconds)
                    cells[f"{database}{mark}, {count}"] = partial(run_room, target, order)
        runs = measure(cells, options.rounds)
        bare_frames = [run.frame for run in runs["bare broadcast"]]
        print(
            f"{'database, processes':22}{'µs a word':>26}{'µs a frame':>26}{'p95 ms behind':>26}"
            f"{'bytes a byte of text':>26}   x bare broadcast"
        )
        for name, cell_runs in runs.items():
            frames = [run.frame for run in cell_runs]
            against = ratio(frames, bare_frames)
            behind = spread([run.behind for run in cell_runs])
            wire = spread([run.wire for run in cell_runs])
            words = spread([run.word for run in cell_runs])
            columns = "".join(f"{column!s:>26}" for column in (words, spread(frames), behind, wire))
            print(f"{name:22}{columns}   {against}")
            if "@" in name:
                continue
            short = name.replace(", ", ".").replace(" ", "_")
            report.add(f"fanout.{short}", spread(frames), "µs")
            report.add(f"fanout.{short}.broadcast", against)
            if cell_runs is not runs["bare broadcast"]:
                report.add(f"fanout.{short}.word", words, "µs")
                report.add(f"fanout.{short}.behind", behind, "ms")
                report.add(f"fanout.{short}.wire", wire)
