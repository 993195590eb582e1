"""The growth of a server process's memory over many turns.

N sockets, each with a private chat, ask again and again; the process's proportional set size (PSS)
is read after each part of the turns. A process without leaks grows while its caches fill and its
allocator settles, and then stays level. The figure is the growth over the last half.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from benchmarks import AGENT, MODEL_AGENT, gauges, results, servers, turn_runs
from benchmarks.commands.answers.model import agent_of
from benchmarks.rounds import load, spread

if TYPE_CHECKING:
    from collections.abc import Sequence

MIB: Final = 2**20
PARTS: Final = 20


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the turns in parts and print the memory after each."""
    parser = results.parser("memory", __doc__)
    parser.add_argument("--turns", type=int, default=50_000, metavar="N", help="in all (50,000)")
    parser.add_argument("--sockets", type=int, default=32, metavar="N")
    parser.add_argument("--agent", choices=["scripted", "model"], default="scripted")
    parser.set_defaults(database=["sqlite"])
    options = parser.parse_args(arguments)
    with results.Results("memory", options.results) as report:
        for database in results.databases_of(options):
            with ExitStack() as stack:
                model = stack.enter_context(servers.serving(servers.of_stub("model")))
                data = stack.enter_context(
                    servers.prepared(
                        database,
                        servers.SeedPlan(agents=[agent_of(model)]),
                        results.settings_of(options),
                    )
                )
                server = stack.enter_context(servers.serving(servers.of_ours(data)))
                agent = MODEL_AGENT if options.agent == "model" else AGENT
                target = turn_runs.ours(data, server, agent=agent)
                sizes = _grow(target, server.pid, options.turns, options.sockets)
            half = next(size for turns, size in sizes if turns >= sizes[-1][0] / 2)
            first, last = sizes[0][1], sizes[-1][1]
            growth = (last - half) / MIB
            print(
                f"{database}: {(last - first) / MIB:.1f} MiB in all, {growth:.1f} in the last half"
            )
            report.add(f"memory.{database}.last_half", spread([growth]), "MiB")
            report.add(f"memory.{database}.all", spread([(last - first) / MIB]), "MiB")


def _grow(
    target: turn_runs.TurnTarget, pid: int, turns: int, sockets: int
) -> list[tuple[int, int]]:
    """Run the turns; return pairs of turns so far and bytes, the first after a short warm-up."""
    done, per_second = 0, 0.0
    sizes: list[tuple[int, int]] = []
    print(f"{'turns':>9}{'MiB':>8}{'CPU ms/turn':>13}{'load':>6}", flush=True)
    while done < turns:
        seconds = min(60.0, max(0.5, turns / PARTS / per_second)) if per_second else 2.0
        run = turn_runs.run_turns(target, sockets, seconds, warm=0.0)
        done, per_second = done + run.turns, run.per_second
        sizes.append((done, gauges.pss_bytes(pid)))
        print(f"{done:>9}{sizes[-1][1] / MIB:>8.1f}{run.cpu:>13.2f}{load():>6.1f}", flush=True)
    return sizes
