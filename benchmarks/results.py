"""The figures of a run: printed at its end, and stored in a file if one is given.

The file is JSON: for each command, the time, machine and load of its run, and its figures by name
as `{median, low, high, rounds, unit}`. A command replaces its own entry only.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from benchmarks import rounds, servers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from benchmarks.rounds import Spread


class Results:
    """A context that collects figures and records the load at its beginning and end."""

    def __init__(self, command: str, path: str | None) -> None:
        self._command = command
        self._path = Path(path) if path else None
        self._figures: dict[str, dict[str, Any]] = {}
        self._loads: list[float] = []

    def __enter__(self) -> Self:
        self._loads.append(rounds.load())
        print(
            f"{self._command}: Python {platform.python_version()}, {os.cpu_count()} cores,"
            f" load {self._loads[0]:.1f}",
            flush=True,
        )
        return self

    def add(self, name: str, figure: Spread, unit: str = "x") -> None:
        """Add a figure; `x` is the unit of ratios."""
        self._figures[name] = {**asdict(figure), "unit": unit}

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loads.append(rounds.load())
        print(f"load at the end {self._loads[-1]:.1f}", flush=True)
        if kind is None and self._path:
            stored = json.loads(self._path.read_text()) if self._path.exists() else {}
            stored[self._command] = {
                "at": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
                "commit": _commit(),
                "python": platform.python_version(),
                "cores": os.cpu_count(),
                "load": [round(load, 1) for load in self._loads],
                "figures": self._figures,
            }
            self._path.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")


def _commit() -> str:
    process = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],  # noqa: S607 git of this machine
        cwd=servers.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return process.stdout.strip()


def parser(command: str, description: str | None) -> argparse.ArgumentParser:
    """Return a command's parser with the common options."""
    argument_parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks {command}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    argument_parser.add_argument(
        "--results", metavar="FILE", help="keep the figures in this JSON file"
    )
    argument_parser.add_argument(
        "--rounds", type=int, default=5, metavar="N", help="of each cell (5)"
    )
    argument_parser.add_argument("--seconds", type=float, default=2.0, help="of one run (2)")
    argument_parser.add_argument(
        "--database",
        choices=["sqlite", "postgresql"],
        nargs="+",
        help="only these (both, where a PostgreSQL answers)",
    )
    argument_parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="setting of the server"
    )
    return argument_parser


def settings_of(options: argparse.Namespace) -> dict[str, str]:
    """Return the settings given with `--set`."""
    return dict(pair.split("=", 1) for pair in options.set)


def databases_of(options: argparse.Namespace) -> Sequence[str]:
    """Return the databases to measure."""
    if options.database:
        return list(options.database)
    if servers.postgres_url() is None:
        print("No PostgreSQL answers; set TEST_DATABASE_URL to measure it too.", file=sys.stderr)
        return ["sqlite"]
    return ["sqlite", "postgresql"]
