"""The check of a long chat: `manage.py audit_log`, and `uamp verify` of its export with its log.

Half of the messages are signed answers of an agent. Measures CPU time and memory of each program
in chats of 10,000 and 100,000 messages, with the start of Python and, for the first, of Django.
Memory is the largest resident set.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from benchmarks import results, servers
from benchmarks.rounds import measure, ratio, spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.servers import Data

SEED_SECONDS: Final = 3600
PROGRAM: Final = servers.ROOT / "benchmarks" / "verification" / "program.py"


class Consumption(NamedTuple):
    """The CPU time and the largest resident set of a finished program."""

    seconds: float
    megabytes: float


def consumption_of(data: Data, arguments: Sequence[str]) -> Consumption:
    """Run a program that has to succeed, and return what it used."""
    with subprocess.Popen(  # noqa: S603 our own interpreter
        [sys.executable, *arguments],
        cwd=data.tree,
        env=dict(data.environment),
        stdout=subprocess.DEVNULL,
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{arguments} ended with {process.returncode}")
    return Consumption(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write both chats, verify them in shuffled turns and print time, memory and the ratios."""
    parser = results.parser("verify", __doc__)
    parser.add_argument(
        "--messages", type=int, nargs=2, default=[10_000, 100_000], metavar="N", help="in two chats"
    )
    options = parser.parse_args(arguments)
    with results.Results("verify", options.results) as report:
        for database in results.databases_of(options):
            settings = {"UAMP_SIGNATURE_ALGORITHM": "EdDSA", **results.settings_of(options)}
            with servers.prepared(database, settings=settings) as data:
                chats = {count: _written(data, count) for count in options.messages}
                _verify(database, data, chats, options.rounds, report)


def _written(data: Data, count: int) -> str:
    """Write a chat and its files; return its id."""
    finished = subprocess.run(  # noqa: S603 our own interpreter
        [sys.executable, "-P", str(PROGRAM), str(data.folder), str(count)],
        cwd=data.tree,
        env=dict(data.environment),
        capture_output=True,
        text=True,
        timeout=SEED_SECONDS,
        check=False,
    )
    if finished.returncode:
        raise RuntimeError(finished.stderr[-4000:])
    return finished.stdout.strip()


def _verify(
    database: str, data: Data, chats: dict[int, str], rounds: int, report: results.Results
) -> None:
    memory: dict[tuple[str, int], list[float]] = {}

    def run(name: str, count: int, command: Sequence[str]) -> float:
        used = consumption_of(data, command)
        memory.setdefault((name, count), []).append(used.megabytes)
        return used.seconds

    for name in ("audit_log", "uamp verify"):
        cells = {}
        for count, chat in chats.items():
            command = ["manage.py", "audit_log", chat]
            if name == "uamp verify":
                file = data.folder / f"{count}.ndjson"
                keys = data.folder / f"{count}.keys.json"
                command = ["-m", "uamp", "verify", str(file), "--keys", str(keys)]
            cells[count] = partial(run, name, count, command)
        runs = measure(cells, rounds)
        for count, seconds in sorted(runs.items()):
            megabytes = spread(memory[name, count])
            rate = count / spread(seconds).median
            print(
                f"{database}: {name} of {count:,} messages: {spread(seconds)} s,"
                f" {rate:,.0f} messages a second, {megabytes} MiB",
                flush=True,
            )
            report.add(f"verify.{database}.{name}.{count}.seconds", spread(seconds), "s")
            report.add(f"verify.{database}.{name}.{count}.memory", megabytes, "MiB")
        (small, quick), (large, slow) = sorted(runs.items())
        figure = ratio(slow, quick)
        print(f"{database}: {name}, {large / small:g} times the messages: {figure} x the time")
