"""The cost of a stored turn, next to a bare application, the reference or another commit.

A turn has `input.text` and `response.create` as input, 22 output frames (20 deltas) from a scripted
agent that answers without delay, and stores 2 messages and 4 events in 2 commits. N sockets, each
with a private chat, each ask again after an answer. The floor is a bare ASGI application that sends
the same frames. The reference (`webagents` 0.3.9 from PyPI, installed once into its own virtual
environment) gets one frame, sends the same number of deltas and stores nothing.

CPU covers all threads of the server and of its PostgreSQL backends, in milliseconds per turn:
`store` is the writer thread and PostgreSQL, `loop` is everything else. Compare ratios only;
milliseconds are meaningless under load.
"""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Final

from benchmarks import AGENT, earlier, results, servers, turn_runs
from benchmarks.reference import installation
from benchmarks.rounds import measure, ratio
from benchmarks.turn_runs import TurnTarget

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from benchmarks.results import Results
    from benchmarks.turn_runs import Turns

    Runs = Mapping[tuple[str, int], Sequence[Turns]]

FLOOR: Final = "floor"
REFERENCE: Final = "reference"
HEAD: Final = (
    f"{'':22}{'sockets':>8}{'CPU ms/turn':>12}{'loop':>7}{'store':>7}{'turns/s':>9}"
    f"{'p50 ms':>8}{'p95':>8}{'1st delta':>10}"
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the cells in shuffled turns and print their ratios."""
    parser = results.parser("turns", __doc__)
    parser.add_argument("--sockets", type=int, nargs="+", default=[1, 32], metavar="N")
    parser.add_argument(
        "--against",
        nargs="+",
        default=[FLOOR],
        metavar="WHAT",
        help="floor, reference, or a commit of this repository",
    )
    parser.add_argument("--server", choices=["uvicorn", "daphne"], default="uvicorn")
    parser.add_argument("--agent", default=AGENT, help="the agent that is asked (echo)")
    parser.add_argument("--profile", metavar="FILE", help="write the server's cProfile data")
    options = parser.parse_args(arguments)
    with results.Results("turns", options.results) as report, ExitStack() as stack:
        targets = start(options, stack)
        cells = {
            (name, sockets): partial(turn_runs.run_turns, target, sockets, options.seconds)
            for name, target in targets.items()
            for sockets in options.sockets
        }
        runs = measure(cells, options.rounds)
        show(runs)
        show_ratios(runs, report)


def start(options: argparse.Namespace, stack: ExitStack) -> dict[str, TurnTarget]:
    """Start all servers until the stack is closed: `floor`, `sqlite`, `sqlite@abc1234`."""
    settings = results.settings_of(options)
    if options.profile:
        settings["BENCH_PROFILE"] = options.profile
    targets: dict[str, TurnTarget] = {}
    commits = [name for name in options.against if name not in {FLOOR, REFERENCE}]
    for database in results.databases_of(options):
        for commit in ["", *commits]:
            tree = earlier.tree(commit) if commit else servers.ROOT
            data = stack.enter_context(servers.prepared(database, None, settings, tree))
            server = stack.enter_context(servers.serving(servers.of_ours(data, options.server)))
            name = f"{database}@{commit}" if commit else database
            targets[name] = turn_runs.ours(data, server, agent=options.agent)
    first = next(iter(targets.values()))
    frames = "\n".join(turn_runs.record_turn(first))
    floor = servers.of_stub(FLOOR, {"BENCH_FRAMES": frames})
    targets[FLOOR] = TurnTarget(
        servers=[stack.enter_context(servers.serving(floor))], order=first.order
    )
    if REFERENCE in options.against:
        server = stack.enter_context(servers.serving(installation.program()))
        targets[REFERENCE] = TurnTarget(servers=[server], order=installation.order())
    return targets


def show(runs: Runs) -> None:
    """Print the medians of each cell."""
    print(HEAD)
    for (name, sockets), cell_runs in sorted(runs.items(), key=lambda cell: cell[0][::-1]):
        values = [
            statistics.median(getattr(turns, field) for turns in cell_runs)
            for field in ("cpu", "store_cpu", "per_second", "p50", "p95", "first_p50")
        ]
        cpu, store, per_second, p50, p95, first = values
        print(
            f"{name:22}{sockets:>8}{cpu:>12.2f}{cpu - store:>7.2f}{store:>7.2f}{per_second:>9.0f}"
            f"{p50:>8.1f}{p95:>8.1f}{first:>10.1f}"
        )


def show_ratios(runs: Runs, report: Results) -> None:
    """Print the cost of each cell relative to each of its bases, and its components."""
    bases = sorted({name for name, _ in runs if name in {FLOOR, REFERENCE} or "@" in name})
    print("\nCPU per turn, median ratio (least to greatest of the rounds)")
    for (name, sockets), cell_runs in sorted(runs.items(), key=lambda cell: cell[0][::-1]):
        if "@" in name:
            continue
        for base in bases:
            if base == name or ("@" in base and base.partition("@")[0] != name):
                continue
            under = [turns.cpu for turns in runs[base, sockets]]
            total = ratio([turns.cpu for turns in cell_runs], under)
            line = f"{name}, {sockets} sockets: {total} x {base}"
            against = "earlier" if "@" in base else base
            report.add(f"turn.{name}.{sockets}.{against}", total)
            if name not in {FLOOR, REFERENCE}:
                loop = ratio([turns.cpu - turns.store_cpu for turns in cell_runs], under)
                store = ratio([turns.store_cpu for turns in cell_runs], under)
                line += f" = {loop} loop + {store} store"
                report.add(f"turn.{name}.{sockets}.{against}.loop", loop)
                report.add(f"turn.{name}.{sockets}.{against}.store", store)
            print(line)
