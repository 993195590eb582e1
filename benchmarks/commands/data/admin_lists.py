"""The admin's lists in a database with large tables.

SQL fills every growing table with `--rows` rows. Then each list is requested, also with filters
that match few rows or none; printed are the number of statements and the median of three times. The
views run in one process without a server; the times include rendering the page.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from benchmarks import results, servers
from benchmarks.rounds import spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.results import Results

ROWS: Final = 1_000_000
PROGRAM: Final = servers.ROOT / "benchmarks" / "admin_pages.py"


def main(arguments: Sequence[str] | None = None) -> None:
    """Fill each database, and print the lists with their statements and times."""
    parser = results.parser("admin_lists", __doc__)
    parser.add_argument("--rows", type=int, default=ROWS, metavar="N", help="of each table")
    options = parser.parse_args(arguments)
    with results.Results("admin_lists", options.results) as report:
        for database in results.databases_of(options):
            with servers.prepared(database, None, results.settings_of(options)) as data:
                _measure(database, data, options.rows, report)


def _measure(database: str, data: servers.Data, rows: int, report: Results) -> None:
    environment = {**data.environment, "GROWTH_ROWS": str(rows), "SECURE_SSL_REDIRECT": ""}
    command = [sys.executable, "-P", str(PROGRAM)]
    with subprocess.Popen(  # noqa: S603 our own interpreter
        command, cwd=data.tree, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        for line in process.stdout or ():
            row = json.loads(line)
            if "filled" in row:
                print(f"{database}: {rows:,} rows of each table after {row['filled']:.0f} s")
                continue
            name = f"{row['list']}?{row['query']}".rstrip("?")
            figure = spread(row["times"])
            print(f"{database}: {row['statements']:3} {figure} ms {name}", flush=True)
            report.add(f"admin_lists.{database}.{name}", figure, "ms")
    if process.returncode:
        raise RuntimeError(f"{PROGRAM.name} ended with {process.returncode}")
