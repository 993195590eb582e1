"""The cost of many people joining a chat within a minute, and how long each of them waits.

The owner adds one person after another over REST at a steady rate; each then opens a session in the
chat and stays. Everybody present learns who has joined and who is online. CPU covers all server
processes and PostgreSQL, per person.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from benchmarks import AGENT, results, servers, turn_runs
from benchmarks.clients.joins import JoinOrder
from benchmarks.rounds import measure, spread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CLIENT: Final = "benchmarks.clients.joins"


@dataclass(frozen=True, kw_only=True)
class JoinRun:
    """Figures of one run: CPU per person and 95th-percentile times in ms, bytes per person."""

    cpu: float
    added: float
    opened: float
    received: float


def run_joins(database: str, settings: Mapping[str, str], people: int, seconds: float) -> JoinRun:
    """Create a database, serve it, and have the people join."""
    plan = servers.SeedPlan(members=people, have_joined=False, room_agent=AGENT)
    with ExitStack() as stack:
        data = stack.enter_context(servers.prepared(database, plan, settings))
        server = stack.enter_context(servers.serving(servers.of_ours(data)))
        target = turn_runs.ours(data, server)
        order = JoinOrder(
            chat=data.room,
            people=[(f"member{n}", server.port, key) for n, key in enumerate(data.members)],
            owner=(server.port, data.token),
            seconds=seconds,
        )
        with turn_runs.client(order, CLIENT) as process:
            turn_runs.read_line(process)
            before = target.cpu()
            turn_runs.read_line(process)
            after = target.cpu()
            turn_runs.go_on(process)
            result = json.loads(turn_runs.read_line(process))
    used = after[0] - before[0] + after[2] - before[2]
    return JoinRun(
        cpu=used * 1000 / people,
        added=result["added_ms"]["p95"],
        opened=result["opened_ms"]["p95"],
        received=result["bytes"] / people,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run once per round and print the cost per person."""
    parser = results.parser("joins", __doc__)
    parser.add_argument("--people", type=int, default=1000, metavar="N", help="who join (1000)")
    parser.set_defaults(seconds=60.0, rounds=1)
    options = parser.parse_args(arguments)
    settings = results.settings_of(options)
    with results.Results("joins", options.results) as report:
        cells = {
            database: partial(run_joins, database, settings, options.people, options.seconds)
            for database in results.databases_of(options)
        }
        runs = measure(cells, options.rounds)
        print(f"{'':12}{'CPU ms a person':>24}{'added p95 ms':>24}{'opened p95 ms':>24}{'kB':>20}")
        for database, cell_runs in runs.items():
            figures = {
                "cpu": (spread([run.cpu for run in cell_runs]), "ms"),
                "added": (spread([run.added for run in cell_runs]), "ms"),
                "opened": (spread([run.opened for run in cell_runs]), "ms"),
                "received": (spread([run.received / 1000 for run in cell_runs]), "kB"),
            }
            columns = "".join(f"{figure!s:>24}" for figure, _ in figures.values())
            print(f"{database:12}{columns}")
            for name, (figure, unit) in figures.items():
                report.add(f"joins.{database}.{name}", figure, unit)
