"""The cost of a message that a program posts by REST, next to a batch of UAMP.

`message` is stored in a shared chat and answered by no agent: `POST /api/v1/chats/{id}/messages`
with `"agents": []`, against a batch that opens a session in that chat and sends `input.text` and
`response.create`. `answered` has the echo agent's answer of 20 words in its reply: `"wait": 30`
against the same batch with the agent. N connections each send the next request after a reply.

CPU covers all threads of the server and of its PostgreSQL backends, per request.
"""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from benchmarks import AGENT, results, servers, turn_runs
from benchmarks.rounds import measure, ratio
from benchmarks.servers import SeedPlan
from benchmarks.turn_runs import TEXT, TurnTarget

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.turn_runs import Turns

CHAT: Final = 100
AGENTS: Final[Mapping[str, list[str]]] = {"message": [], "answered": [AGENT]}
HEAD: Final = f"{'':32}{'connections':>12}{'CPU ms':>8}{'per second':>12}{'p50 ms':>8}{'p95 ms':>8}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the cells in shuffled turns and print their ratios."""
    parser = results.parser("posting", __doc__)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 4], metavar="N")
    options = parser.parse_args(arguments)
    with results.Results("posting", options.results) as report, ExitStack() as stack:
        cells = {}
        for database in results.databases_of(options):
            data = stack.enter_context(
                servers.prepared(
                    database, SeedPlan(chats=[CHAT]), settings=results.settings_of(options)
                )
            )
            server = stack.enter_context(servers.serving(servers.of_ours(data)))
            base = turn_runs.ours(data, server)
            for what, agents in AGENTS.items():
                for way, target in targets(base, data.chats[CHAT], agents).items():
                    for number in options.connections:
                        run = partial(turn_runs.run_turns, target, number, options.seconds)
                        cells[database, what, way, number] = run
        runs = measure(cells, options.rounds)
        show(runs)
        print("\nmedian ratio of REST to a batch (least to greatest of the rounds)")
        for (database, what, way, number), cell_runs in sorted(runs.items()):
            if way == "batch":
                continue
            others = runs[database, what, "batch", number]
            for field, unit in (("cpu", "CPU"), ("p50", "time")):
                figure = ratio(
                    [getattr(turns, field) for turns in cell_runs],
                    [getattr(turns, field) for turns in others],
                )
                report.add(f"posting.{database}.{what}.{number}.{field}", figure)
                print(f"{database}, {what}, {number} connections: {unit} {figure}")


def targets(base: TurnTarget, chat: str, agents: list[str]) -> dict[str, TurnTarget]:
    """Return the same post by REST and as a batch."""
    wait: dict[str, Any] = {"wait": 30} if agents else {}
    rest = {"content": TEXT, "agents": agents, **wait}
    batch = [
        {"type": "session.create", "event_id": "1", "uamp_version": "1.0", "chat": chat},
        {"type": "input.text", "event_id": "2", "text": TEXT},
        {"type": "response.create", "event_id": "3", "agents": agents},
    ]
    posts: dict[str, tuple[str, Any]] = {
        "rest": (f"/api/v1/chats/{chat}/messages", rest),
        "batch": ("/uamp", batch),
    }
    return {
        way: replace(base, order=replace(base.order, http=True, path=path, body=body))
        for way, (path, body) in posts.items()
    }


def show(runs: Mapping[tuple[str, str, str, int], Sequence[Turns]]) -> None:
    """Print the medians of each cell."""
    print(HEAD)
    for (database, what, way, number), cell_runs in sorted(runs.items()):
        cpu, per_second, p50, p95 = (
            statistics.median(getattr(turns, field) for turns in cell_runs)
            for field in ("cpu", "per_second", "p50", "p95")
        )
        print(
            f"{f'{database}, {what}, {way}':32}{number:>12}{cpu:>8.2f}{per_second:>12.0f}"
            f"{p50:>8.1f}{p95:>8.1f}"
        )
