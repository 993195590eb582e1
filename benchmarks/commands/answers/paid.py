"""The cost of a paid turn next to a free one.

The same turn of 20 deltas with an agent that has a price, paid under a standing approval: its two
writes also store a hold and its settlement, and the log gets two more events.
"""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from benchmarks import AGENT, PAID_AGENT, results, servers, turn_runs
from benchmarks.rounds import measure, ratio

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the cells in shuffled turns and print their ratios."""
    parser = results.parser("paid", __doc__)
    parser.add_argument("--sockets", type=int, nargs="+", default=[1, 32], metavar="N")
    options = parser.parse_args(arguments)
    with results.Results("paid", options.results) as report, ExitStack() as stack:
        cells = {}
        for database in results.databases_of(options):
            data = stack.enter_context(
                servers.prepared(database, settings=results.settings_of(options))
            )
            server = stack.enter_context(servers.serving(servers.of_ours(data)))
            for agent in (AGENT, PAID_AGENT):
                target = turn_runs.ours(data, server, agent=agent)
                for sockets in options.sockets:
                    run = partial(turn_runs.run_turns, target, sockets, options.seconds)
                    cells[database, sockets, agent] = run
        runs = measure(cells, options.rounds)
        print(f"{'':14}{'sockets':>8}{'free ms/turn':>14}{'paid':>8}   paid / free")
        for database, sockets, agent in runs:
            if agent == PAID_AGENT:
                continue
            free, paid = (
                [turns.cpu for turns in runs[database, sockets, name]]
                for name in (AGENT, PAID_AGENT)
            )
            figure = ratio(paid, free)
            report.add(f"paid.{database}.{sockets}", figure)
            print(
                f"{database:14}{sockets:>8}{statistics.median(free):>14.2f}"
                f"{statistics.median(paid):>8.2f}   {figure}"
            )
