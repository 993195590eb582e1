"""The history of a long chat over REST, next to that of a short one.

Measures the time of a request for a page of 50 messages at the end of the chat and in its middle,
for one with a filter that few messages match, and for a search for a word that one message has and
a word that all have, in chats of 1,000 and 1,000,000 messages of one database; and the messages and
bytes per second of an export as NDJSON. SQL inserts all rows in bulk.
"""

from __future__ import annotations

import http.client
import time
from functools import partial
from typing import TYPE_CHECKING, Final

from benchmarks import results, servers, turn_runs
from benchmarks.rounds import measure, ratio, spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.servers import Data, Server

REQUESTS: Final = 20
READS: Final = {
    "page": "?limit=50",
    "middle": "?limit=50&before={middle}",
    "filter": "?limit=50&has=error",
    "rare word": "?limit=50&q={middle}",
    "frequent word": "?limit=50&q=message",
}


def body_of(data: Data, server: Server, path: str) -> bytes:
    """Return the body of a GET."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    connection.request("GET", path, headers={"Authorization": f"Bearer {data.token}"})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    if answer.status != http.HTTPStatus.OK:
        raise RuntimeError(body[:400].decode())
    return body


def milliseconds_of(data: Data, server: Server, path: str) -> float:
    """Return the time of a request, averaged over REQUESTS sequential ones."""
    began = time.perf_counter()
    for _ in range(REQUESTS):
        body_of(data, server, path)
    return (time.perf_counter() - began) * 1000 / REQUESTS


def main(arguments: Sequence[str] | None = None) -> None:
    """Seed each database, query both chats in shuffled turns and print the ratios."""
    parser = results.parser("history", __doc__)
    parser.add_argument(
        "--messages", type=int, nargs=2, default=[1000, 1_000_000], metavar="N", help="in two chats"
    )
    options = parser.parse_args(arguments)
    with results.Results("history", options.results) as report:
        for database in results.databases_of(options):
            plan = servers.SeedPlan(chats=tuple(options.messages))
            settings = results.settings_of(options)
            began = time.perf_counter()
            with (
                servers.prepared(database, plan, settings) as data,
                servers.serving(servers.of_ours(data)) as server,
            ):
                print(f"{database}: prepared after {time.perf_counter() - began:.0f} s", flush=True)
                _compare_reads(database, data, server, options.rounds, report)
                _export(database, data, server)


def _compare_reads(
    database: str, data: Data, server: Server, rounds: int, report: results.Results
) -> None:
    for name, query in READS.items():
        cells = {
            count: partial(
                milliseconds_of,
                data,
                server,
                f"/api/v1/chats/{chat}/messages{query.format(middle=count // 2)}",
            )
            for count, chat in data.chats.items()
        }
        runs = measure(cells, rounds)
        (small, quick), (large, slow) = sorted(runs.items())
        figure = ratio(slow, quick)
        print(
            f"{database}: {name} of {large:,} messages: {spread(slow)} ms, of {small:,}:"
            f" {spread(quick)} ms; {figure} x",
            flush=True,
        )
        report.add(f"history.{database}.{name.replace(' ', '_')}", figure)


def _export(database: str, data: Data, server: Server) -> None:
    largest = max(data.chats)
    target = turn_runs.ours(data, server)
    before, began = target.cpu(), time.perf_counter()
    body = body_of(data, server, f"/api/v1/chats/{data.chats[largest]}/export?format=ndjson")
    seconds, after = time.perf_counter() - began, target.cpu()
    cpu = after[0] - before[0] + after[2] - before[2]
    print(
        f"{database}: export of {largest:,} messages: {seconds:.1f} s,"
        f" {largest / seconds:,.0f} messages and {len(body) / seconds / 1e6:.1f} MB a second,"
        f" {cpu / largest * 1e6:.0f} µs of CPU a message"
    )
