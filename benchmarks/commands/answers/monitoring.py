"""The cost of metrics and exported spans in a free turn.

In one process and database, each round runs turns with neither, with the metrics' counters, with
spans of 5 % of the turns and with spans of all, in shuffled order, and compares them with the turns
that have neither. The CPU time of the process is counted, with the export of the spans to a
collector that keeps nothing; with --instructions, callgrind counts instead, which a loaded machine
hardly changes and which takes fifty times as long.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Final

from benchmarks import AGENT, callgrind, results, servers, turn_runs
from benchmarks.rounds import ratio, spread

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.servers import Data

VARIANTS: Final = {
    "metrics": "metrics",
    "sampled": "metrics, spans of 5 %",
    "traced": "metrics, all spans",
}
BARE: Final = "bare"


def main(arguments: Sequence[str] | None = None) -> None:
    """Count on each database, and print what each variant adds to a turn."""
    parser = results.parser("monitoring", __doc__)
    parser.add_argument("--instructions", action="store_true", help="count with callgrind")
    parser.add_argument("--warm", type=int, default=10, metavar="N", help="turns before (10)")
    parser.add_argument("--turns", type=int, default=50, metavar="N", help="per round (50)")
    options = parser.parse_args(arguments)
    with results.Results("monitoring", options.results) as report, collector() as sink:
        for database in results.databases_of(options):
            with servers.prepared(database, settings=results.settings_of(options)) as data:
                order = {
                    "switch": str(callgrind.compiled_switch()) if options.instructions else "",
                    "sink": sink,
                    "token": data.token,
                    "agent": AGENT,
                    "text": turn_runs.TEXT,
                    "warm": options.warm,
                    "turns": options.turns,
                    "rounds": options.rounds,
                }
                rounds = counted(data, order)
            base = [seconds[BARE] for seconds in rounds]
            print(f"{database}: {spread([1000 * value for value in base])} per bare turn")
            for name, label in VARIANTS.items():
                over = ratio([seconds[name] for seconds in rounds], base)
                report.add(f"monitoring.{database}.{name}", over)
                print(f"  {label:24}{over} of it", flush=True)


def counted(data: Data, order: dict[str, object]) -> list[dict[str, float]]:
    """Return the cost of a turn by variant and round: CPU seconds, or millions of instructions."""
    is_counting = bool(order["switch"])
    printed = callgrind.run("monitored.py", data, order, counting=is_counting)
    if is_counting:
        return [callgrind.counts_in(data.folder, int(str(order["turns"])) * 1_000_000)]
    lines = [line for line in printed.splitlines() if line.startswith("{")]
    return [json.loads(line) for line in lines]


@contextmanager
def collector() -> Iterator[str]:
    """Run a collector that takes spans and keeps none, and yield its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{httpd.server_port}/v1/traces"
        finally:
            httpd.shutdown()
            thread.join(timeout=10)
