"""Large chats and databases, next to small ones.

Figures are CPU. Opening: the newest page of a chat's messages over REST (50), and a new socket up
to its session in the chat, in chats of 100 and 100,000 messages in the larger database. A turn: in
databases with 1,000 and 1,000,000 messages of other people, as many events and half as many answers
and client events; both servers run and take turns. SQL inserts all rows in bulk.
"""

from __future__ import annotations

import http.client
import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from benchmarks import results, servers, turn_runs
from benchmarks.clients.turns import Order
from benchmarks.rounds import measure, ratio, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.results import Results
    from benchmarks.servers import Data, Server

OPENINGS = 60
SOCKETS = 8


def open_history(data: Data, server: Server, chat_id: str) -> None:
    """Request the newest page of a chat's messages over REST, OPENINGS times."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    for _ in range(OPENINGS):
        connection.request(
            "GET",
            f"/api/v1/chats/{chat_id}/messages?order=desc",
            headers={"Authorization": f"Bearer {data.token}"},
        )
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != http.HTTPStatus.OK:
            raise RuntimeError(body.decode())
    connection.close()


def open_session(data: Data, server: Server, chat_id: str) -> None:
    """Open sockets up to their session in a chat, one after another."""
    order = Order(
        port=server.port, token=data.token, session={"chat": chat_id}, sockets=OPENINGS, at_once=1
    )
    with turn_runs.client(order) as process:
        turn_runs.read_line(process)


def cpu_of(
    opening: Callable[[Data, Server, str], None], data: Data, server: Server, chat_id: str
) -> float:
    """Return the CPU time of one opening in milliseconds."""
    target = turn_runs.ours(data, server)
    before = target.cpu()
    opening(data, server, chat_id)
    after = target.cpu()
    return (after[0] - before[0] + after[2] - before[2]) * 1000 / OPENINGS


def main(arguments: Sequence[str] | None = None) -> None:
    """Seed each database, run small and large in shuffled turns and print the ratios."""
    parser = results.parser("growth", __doc__)
    parser.add_argument(
        "--messages", type=int, nargs=2, default=[100, 100_000], metavar="N", help="in two chats"
    )
    parser.add_argument(
        "--rows", type=int, nargs=2, default=[1000, 1_000_000], metavar="N", help="of others"
    )
    options = parser.parse_args(arguments)
    with results.Results("growth", options.results) as report:
        for database in results.databases_of(options):
            settings = results.settings_of(options)
            with ExitStack() as stack:
                running = []
                for rows in options.rows:
                    began = time.perf_counter()
                    is_largest = rows == max(options.rows)
                    plan = servers.SeedPlan(rows=rows, chats=options.messages if is_largest else ())
                    data = stack.enter_context(servers.prepared(database, plan, settings))
                    server = stack.enter_context(servers.serving(servers.of_ours(data)))
                    running.append((rows, data, server))
                    seconds = time.perf_counter() - began
                    print(f"{database}: {rows:,} rows after {seconds:.0f} s", flush=True)
                _compare_turns(database, running, options.rounds, options.seconds, report)
                largest = next(run for run in running if run[1].chats)
                _compare_openings(database, largest[1], largest[2], options.rounds, report)


def _compare_turns(
    database: str,
    running: Sequence[tuple[int, Data, Server]],
    rounds: int,
    seconds: float,
    report: Results,
) -> None:
    cells = {
        rows: partial(turn_runs.run_turns, turn_runs.ours(data, server), SOCKETS, seconds)
        for rows, data, server in running
    }
    runs = {
        rows: [turns.cpu for turns in cell_runs]
        for rows, cell_runs in measure(cells, rounds).items()
    }
    (small, few), (large, many) = runs.items()
    figure = ratio(many, few)
    print(f"{database}: a turn at {large:,} rows: {figure} x that at {small:,}")
    report.add(f"growth.{database}.turn", figure)


def _compare_openings(
    database: str, data: Data, server: Server, rounds: int, report: Results
) -> None:
    for name, opening in (("REST", open_history), ("session", open_session)):
        cells = {
            count: partial(cpu_of, opening, data, server, chat)
            for count, chat in data.chats.items()
        }
        runs = measure(cells, rounds)
        (small, quick), (large, slow) = sorted(runs.items())
        figure = ratio(slow, quick)
        print(
            f"{database}: {name} in a chat of {large:,} messages: {spread(slow)} ms of CPU,"
            f" {figure} x that of {small:,}"
        )
        report.add(f"growth.{database}.{name.lower()}", figure)
