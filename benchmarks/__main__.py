"""`python -m benchmarks COMMAND [options]`: servers that run, measured in shuffled turns.

docs/benchmarks.md says how to read the figures. Each command has a `--help` of its own.
"""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT: Final = "turns"
COMMANDS: Final = {
    "turns": "a stored turn, against a bare application, the reference or another commit",
    "model": "a turn with a model over HTTP, against a proxy of bytes",
    "completions": "a streamed completion, against the WebSocket and servers of others",
    "paid": "a paid turn, against a free one",
    "fanout": "an answer that streams to 100 members, in one process and in two",
    "joins": "1,000 people who join a chat within a minute",
    "workers": "two server processes, against one",
    "memory": "memory over many turns",
    "slow_reader": "a client that stops reading, and what the others notice",
    "growth": "chats and databases that have grown, against small ones",
    "idle": "a process without work, and sessions without work",
    "ledger": "operations of the ledger",
    "streams": "many answers that stream at once",
    "runtime": "what the agent runtime adds to a provider's stream",
    "resume": "how long a killed process is missed",
    "browser": "the page of a chat in a browser: opening it, and an answer that streams fast",
}
AIMS: Final = (
    "turns", "model", "completions", "paid", "fanout", "workers", "memory", "slow_reader",
    "growth", "idle",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; without one `turns`, with `all` those that have an aim."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    listed = "\n".join(f"  {name:13} {what}" for name, what in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=f"{__doc__}\ncommands:\n{listed}\n  {'all':13}those of the aims: "
        f"{', '.join(AIMS)}\n  {'report':13}write the table and the plot of docs/benchmarks.md",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="python -m benchmarks [COMMAND] [options]",
    )
    if given in (["-h"], ["--help"]):
        parser.print_help()
        return
    command = DEFAULT
    if given and not given[0].startswith("-"):
        command = given.pop(0)
    if command == "all":
        for name in AIMS:
            _run(name, given)
    elif command in COMMANDS or command == "report":
        _run(command, given)
    else:
        parser.error(f"no such command: {command}")


def _run(command: str, arguments: Sequence[str]) -> None:
    where = "benchmarks" if command == "report" else "benchmarks.commands"
    importlib.import_module(f"{where}.{command}").main(arguments)


if __name__ == "__main__":
    # So that the servers end too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    main()
