"""Compare connected and remote agents with hosted ones.

The same turn of 20 deltas by the scripted agent, by a daemon connected to the asker's process, by
one connected to another process, to which the run moves, and by the scripted agent of the other
process, called at its address over several protocols (PostgreSQL and Redis). CPU covers all server
processes and PostgreSQL; for a remote agent that is two stored answers.
"""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from benchmarks import AGENT, gauges, results, servers, turn_runs
from benchmarks.clients.daemons import DaemonOrder
from benchmarks.commands.agents.daemons import daemons, seconds_until, settings_of
from benchmarks.rounds import measure, ratio
from benchmarks.turn_runs import TurnTarget

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from benchmarks.servers import Data, Server

REMOTE: Final = {"uamp": "", "a2a": "/a2a", "completions": "/v1"}
"""The protocols of the remote agents, and their paths below that of the agent."""
KINDS: Final = (
    "hosted",
    "daemon here",
    "daemon elsewhere",
    *(f"remote {protocol}" for protocol in REMOTE),
)


@dataclass(frozen=True, kw_only=True)
class DaemonTarget(TurnTarget):
    """A target whose turns also cost CPU in `holders`, which are other processes."""

    holders: Sequence[Server] = field(default_factory=tuple)

    def cpu(self) -> tuple[float, float, float]:
        """See TurnTarget."""
        web, writers, database = super().cpu()
        return (
            web + sum(gauges.cpu_seconds(holder.pid) for holder in self.holders),
            writers,
            database,
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the cells in shuffled turns, then register many daemons."""
    parser = results.parser("connected", __doc__)
    parser.add_argument("--sockets", type=int, nargs="+", default=[1, 16], metavar="N")
    parser.set_defaults(database=["postgresql"])
    options = parser.parse_args(arguments)
    settings = settings_of(results.settings_of(options))
    with results.Results("connected", options.results) as report, ExitStack() as stack:
        (database,) = results.databases_of(options)
        ports = [servers.free_port(), servers.free_port()]
        plan = servers.SeedPlan(
            agents=_remote_agents(ports[1]), connected=[("here", 1, 1), ("away", 1, 1)]
        )
        data = stack.enter_context(servers.prepared(database, plan, settings=settings))
        program = servers.of_ours(data)
        pair = [stack.enter_context(servers.serving(program, port)) for port in ports]
        _measure_turns(options, report, data, pair)


def _remote_agents(port: int) -> list[dict[str, Any]]:
    """Return the rows of agents that call the scripted agent of the server at a port.

    A2A sends the conversation as one text, which the scripted agent would repeat whole.
    """
    return [
        {
            "name": f"remote-{protocol}",
            "kind": "remote",
            "protocol": protocol,
            "url": f"http://127.0.0.1:{port}/agents/{AGENT}{path}",
            "model": AGENT,
            "history_messages": 1 if protocol == "a2a" else None,
        }
        for protocol, path in REMOTE.items()
    ]


def _measure_turns(
    options: Namespace,
    report: results.Results,
    data: Data,
    pair: Sequence[Server],
) -> None:
    here, elsewhere = pair
    with ExitStack() as stack:
        agents = {"hosted": AGENT, "daemon here": "here-0-0", "daemon elsewhere": "away-0-0"}
        agents |= {f"remote {protocol}": f"remote-{protocol}" for protocol in REMOTE}
        for prefix, server in (("here", here), ("away", elsewhere)):
            tokens = list(data.connected[prefix])
            order = DaemonOrder(ports=[server.port], tokens=tokens, prefix=prefix)
            seconds_until(stack.enter_context(daemons(order)), "ready")
        cells = {}
        for kind in KINDS:
            target = DaemonTarget(
                servers=[here],
                holders=[elsewhere],
                order=turn_runs.order_for(data, agent=agents[kind]),
                backends=data.backends,
            )
            for sockets in options.sockets:
                run = partial(turn_runs.run_turns, target, sockets, options.seconds)
                cells[kind, sockets] = run
        runs = measure(cells, options.rounds)
    print(f"{'':18}{'sockets':>8}{'CPU ms/turn':>13}{'first ms':>10}   x hosted: CPU, first delta")
    for (kind, sockets), cell_runs in runs.items():
        hosted = runs["hosted", sockets]
        cpu = ratio([turns.cpu for turns in cell_runs], [turns.cpu for turns in hosted])
        first = ratio(
            [turns.first_p50 for turns in cell_runs], [turns.first_p50 for turns in hosted]
        )
        middle = statistics.median(turns.cpu for turns in cell_runs)
        delay = statistics.median(turns.first_p50 for turns in cell_runs)
        print(f"{kind:18}{sockets:>8}{middle:>13.2f}{delay:>10.2f}   {cpu}, {first}")
        if kind != "hosted":
            name = f"connected.{kind.replace(' ', '_')}.{sockets}"
            report.add(f"{name}.cpu", cpu)
            report.add(f"{name}.first", first)
