"""The cost of a streamed completion, next to a WebSocket turn and other servers.

A completion is one request to `/agents/echo/v1/chat/completions` with a key and one message,
answered with 20 deltas. It opens a new session and chat, and stores the message and the answer. N
streams each send a new request after an answer. `websocket` is the same agent over UAMP's
WebSocket, where a session is opened once. The reference (`webagents` 0.3.9) and LiteLLM's proxy
have a stub model that yields 20 words, and store nothing; LiteLLM has one key and no database.

CPU covers all threads of the server and of its PostgreSQL backends, per completion. `1st delta` is
the time from the request to the first word. The sizes of the adapters are printed at the end.
"""

from __future__ import annotations

import secrets
import statistics
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from benchmarks import AGENT, adapter_sizes, earlier, results, servers, turn_runs
from benchmarks.clients.turns import Order
from benchmarks.reference import installation
from benchmarks.rounds import measure, ratio
from benchmarks.turn_runs import TEXT, TurnTarget

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from benchmarks.results import Results
    from benchmarks.turn_runs import Turns

    Runs = Mapping[tuple[str, int], Sequence[Turns]]

PATH: Final = f"/agents/{AGENT}/v1/chat/completions"
WEBSOCKET: Final = "websocket"
REFERENCE: Final = "reference"
LITELLM: Final = "litellm"
OTHERS: Final = (REFERENCE, LITELLM)
HEAD: Final = (
    f"{'':24}{'streams':>8}{'CPU ms':>8}{'loop':>7}{'store':>7}{'per second':>12}"
    f"{'p50 ms':>8}{'1st delta ms':>14}"
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the cells in shuffled turns and print their ratios."""
    parser = results.parser("completions", __doc__)
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 16], metavar="N")
    parser.add_argument(
        "--against",
        nargs="*",
        default=[],
        metavar="WHAT",
        help="reference, litellm, or a commit of this repository (none)",
    )
    parser.add_argument("--profile", metavar="FILE", help="write the server's cProfile data")
    options = parser.parse_args(arguments)
    with results.Results("completions", options.results) as report, ExitStack() as stack:
        targets = start(options, stack)
        cells = {
            (name, streams): partial(turn_runs.run_turns, target, streams, options.seconds)
            for name, target in targets.items()
            for streams in options.streams
        }
        runs = measure(cells, options.rounds)
        show(runs)
        show_ratios(runs, report)
    adapter_sizes.show_sizes()


def start(options: argparse.Namespace, stack: ExitStack) -> dict[str, TurnTarget]:
    """Start all servers; they run until the stack is closed.

    Names are `sqlite`, `sqlite, websocket`, and `sqlite@016dea2` for another commit.
    """
    settings = results.settings_of(options)
    if options.profile:
        settings["BENCH_PROFILE"] = options.profile
    targets: dict[str, TurnTarget] = {}
    commits = [name for name in options.against if name not in OTHERS]
    for database in results.databases_of(options):
        for commit in ["", *commits]:
            tree = earlier.tree(commit) if commit else servers.ROOT
            data = stack.enter_context(servers.prepared(database, None, settings, tree))
            server = stack.enter_context(servers.serving(servers.of_ours(data)))
            socket = turn_runs.ours(data, server)
            name = f"{database}@{commit}" if commit else database
            targets[name] = replace(socket, order=order(PATH, data.token))
            if not commit:
                targets[f"{name}, {WEBSOCKET}"] = socket
    if REFERENCE in options.against:
        server = stack.enter_context(servers.serving(installation.program()))
        request_order = order(installation.COMPLETIONS_PATH, "any")
        targets[REFERENCE] = TurnTarget(servers=[server], order=request_order)
    if LITELLM in options.against:
        key = f"sk-{secrets.token_hex(32)}"
        server = stack.enter_context(servers.serving(installation.litellm_program(key)))
        request_order = order("/v1/chat/completions", key)
        targets[LITELLM] = TurnTarget(servers=[server], order=request_order)
    return targets


def order(path: str, token: str) -> Order:
    """Return an order for streams of Chat Completions at a path."""
    return Order(port=0, path=path, token=token, text=TEXT, http=True, first=TEXT.split()[0])


def show(runs: Runs) -> None:
    """Print the medians of each cell."""
    print(HEAD)
    fields = ("cpu", "store_cpu", "per_second", "p50", "first_p50")
    for (name, streams), cell_runs in sorted(runs.items(), key=lambda cell: cell[0][::-1]):
        cpu, store, per_second, p50, first = (
            statistics.median(getattr(turns, field) for turns in cell_runs) for field in fields
        )
        print(
            f"{name:24}{streams:>8}{cpu:>8.2f}{cpu - store:>7.2f}{store:>7.2f}"
            f"{per_second:>12.0f}{p50:>8.1f}{first:>14.1f}"
        )


def show_ratios(runs: Runs, report: Results) -> None:
    """Print the cost of a completion relative to each other cell with as many streams."""
    print("\nmedian ratio (least to greatest of the rounds)")
    for (name, streams), cell_runs in sorted(runs.items()):
        if name in OTHERS or name.endswith(WEBSOCKET) or "@" in name:
            continue
        for base, others in runs.items():
            is_earlier = base[0].startswith(f"{name}@")
            if base[1] != streams or not (
                is_earlier or base[0] in {f"{name}, {WEBSOCKET}", *OTHERS}
            ):
                continue
            short = "earlier" if is_earlier else base[0].rpartition(", ")[2]
            for field, what in (("cpu", "CPU"), ("first_p50", "first delta")):
                figure = ratio(
                    [getattr(turns, field) for turns in cell_runs],
                    [getattr(turns, field) for turns in others],
                )
                report.add(f"completions.{name}.{streams}.{short}.{field}", figure)
                print(f"{name}, {streams} streams: {what} {figure} x {base[0]}")
