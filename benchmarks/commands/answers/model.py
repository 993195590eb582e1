"""The cost of a turn with a model over HTTP, next to a proxy that forwards the same stream.

The model is a stub process that answers each request with 20 words, 2 ms apart (MODEL_PAUSE_MS). N
streams are, for the server, sockets whose agent calls the model, and for the proxies, HTTP requests
of Chat Completions. A proxy is a bare ASGI application with httpx or aiohttp as its client; it
stores and parses nothing. `scripted` is the same turn without a model, and `remote` that of a
remote agent behind the same stub, over Chat Completions. `after model` is the time from the model
writing the first delta to its arrival at the client; `1st delta` starts at the question, which the
model answers at once.
"""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from benchmarks import AGENT, MODEL_AGENT, REMOTE_AGENT, earlier, results, servers, turn_runs
from benchmarks.clients.turns import Order
from benchmarks.rounds import measure, ratio, spread
from benchmarks.turn_runs import TEXT, TurnTarget

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.results import Results
    from benchmarks.servers import Server
    from benchmarks.turn_runs import Turns

    Runs = Mapping[tuple[str, int], Sequence[Turns]]

PATH: Final = "/v1/chat/completions"
CLIENTS: Final = ("httpx", "aiohttp")
HEAD: Final = (
    f"{'':26}{'streams':>8}{'CPU ms/turn':>12}{'loop':>7}{'store':>7}{'turns/s':>9}"
    f"{'p50 ms':>8}{'1st delta ms':>14}{'after model ms':>16}"
)


def agent_of(model: Server) -> dict[str, Any]:
    """Return the row of an agent that the stub answers."""
    return {
        "name": MODEL_AGENT,
        "provider": "openai_compat",
        "model": "m",
        "options": {"base_url": f"http://127.0.0.1:{model.port}/v1"},
    }


def remote_of(model: Server) -> dict[str, Any]:
    """Return the row of a remote agent that the stub answers."""
    return {
        "name": REMOTE_AGENT,
        "kind": "remote",
        "protocol": "completions",
        "model": "m",
        "url": f"http://127.0.0.1:{model.port}/v1",
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the cells in shuffled turns and print their ratios."""
    parser = results.parser("model", __doc__)
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 16], metavar="N")
    parser.add_argument("--against", metavar="COMMIT", help="an earlier commit, measured too")
    parser.set_defaults(database=["sqlite"])
    options = parser.parse_args(arguments)
    settings = results.settings_of(options)
    trees = {"": servers.ROOT}
    if options.against:
        trees["@earlier"] = earlier.tree(options.against)
    with results.Results("model", options.results) as report, ExitStack() as stack:
        model = stack.enter_context(servers.serving(servers.of_stub("model")))
        plan = servers.SeedPlan(agents=[agent_of(model), remote_of(model)])
        targets: dict[str, TurnTarget] = {}
        for client in CLIENTS:
            url = f"http://127.0.0.1:{model.port}{PATH}"
            stub = servers.of_stub("proxy", {"BENCH_PROXY": client, "BENCH_MODEL_URL": url})
            targets[f"proxy, {client}"] = TurnTarget(
                servers=[stack.enter_context(servers.serving(stub))],
                order=Order(port=0, path=PATH, text=TEXT, http=True),
            )
        for database in results.databases_of(options):
            for mark, tree in trees.items():
                of_tree = servers.SeedPlan(agents=[agent_of(model)]) if mark else plan
                data = stack.enter_context(servers.prepared(database, of_tree, settings, tree))
                server = stack.enter_context(servers.serving(servers.of_ours(data)))
                kinds = [("model", MODEL_AGENT), ("scripted", AGENT), ("remote", REMOTE_AGENT)]
                # Earlier commits may not have remote agents.
                for kind, agent in kinds[:2] if mark else kinds:
                    target = turn_runs.ours(data, server, agent=agent)
                    targets[f"{database}{mark}, {kind}"] = target
        cells = {
            (name, streams): partial(turn_runs.run_turns, target, streams, options.seconds)
            for name, target in targets.items()
            for streams in options.streams
        }
        runs = measure(cells, options.rounds)
        show(runs)
        show_ratios(runs, report)


def show(runs: Runs) -> None:
    """Print the medians of each cell."""
    print(HEAD)
    fields = ("cpu", "store_cpu", "per_second", "p50", "first_p50", "after_model_p50")
    for (name, streams), cell_runs in sorted(runs.items(), key=lambda cell: cell[0][::-1]):
        cpu, store, per_second, p50, first, after = (
            statistics.median(getattr(turns, field) for turns in cell_runs) for field in fields
        )
        print(
            f"{name:26}{streams:>8}{cpu:>12.2f}{cpu - store:>7.2f}{store:>7.2f}"
            f"{per_second:>9.0f}{p50:>8.1f}{first:>14.1f}{after:>16.1f}"
        )


def show_ratios(runs: Runs, report: Results) -> None:
    """Print the cost of a turn with a model relative to each other cell with as many streams."""
    print("\nCPU per turn, median ratio (least to greatest of the rounds)")
    for (name, streams), cell_runs in sorted(runs.items()):
        database, _, kind = name.partition(", ")
        if kind != "model" or "@" in database:
            continue
        over = [turns.cpu for turns in cell_runs]
        for base, others in runs.items():
            if base[1] != streams or base[0] == name or base[0].endswith("@earlier, scripted"):
                continue
            if base[0].endswith(", remote"):
                continue
            figure = ratio(over, [turns.cpu for turns in others])
            print(f"{name}, {streams} streams: {figure} x {base[0]}")
            short = "earlier" if "@" in base[0] else base[0].rpartition(", ")[2]
            report.add(f"model.{database}.{streams}.{short}", figure)
        for field, what in (
            ("first_p50", "asked to first delta"),
            ("after_model_p50", "first delta written by the model to received"),
        ):
            time = spread([getattr(turns, field) for turns in cell_runs])
            report.add(f"model.{database}.{streams}.{field}", time, "ms")
            print(f"{name}, {streams} streams: {what} {time} ms")
        far = runs[f"{database}, remote", streams]
        for field, what in (("cpu", "CPU per turn"), ("first_p50", "asked to first delta")):
            there = [getattr(turns, field) for turns in far]
            figure = ratio(there, [getattr(turns, field) for turns in cell_runs])
            report.add(f"model.{database}.{streams}.remote_{field}", figure)
            print(f"{database}, remote, {streams} streams: {what} {figure} x {name}")
