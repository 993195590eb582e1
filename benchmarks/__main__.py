"""`python -m benchmarks COMMAND [options]`: running servers, measured in shuffled turns.

docs/benchmarks.md explains how to read the figures. Each command has its own `--help`.
"""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Command(NamedTuple):
    """The subject, which is the folder of the command's module, and what it measures."""

    subject: str
    measures: str


DEFAULT: Final = "turns"
COMMANDS: Final = {
    "turns": Command(
        "answers", "a stored turn, against a bare application, the reference or another commit"
    ),
    "model": Command("answers", "a turn with a model over HTTP, against a proxy of bytes"),
    "completions": Command(
        "answers", "a streamed completion, against the WebSocket and servers of others"
    ),
    "paid": Command("answers", "a paid turn, against a free one"),
    "envelopes": Command(
        "answers", "a question in a signed envelope over each transport, against a turn"
    ),
    "held_streams": Command(
        "answers", "the memory of streams of deltas whose readers acknowledge nothing"
    ),
    "instructions": Command(
        "answers", "the instructions of a turn, free and paid, which hardly vary with the load"
    ),
    "monitoring": Command(
        "answers", "what metrics and exported spans add to a free turn, round by round"
    ),
    "fanout": Command("chats", "an answer that streams to 100 members, in one process and in two"),
    "connected": Command(
        "agents",
        "a turn of a connected and of a remote agent against a hosted one",
    ),
    "daemons": Command(
        "agents", "1,000 daemons with 10,000 agents on two processes, and a restart of these"
    ),
    "users": Command("chats", "what people who read, write and ask cost, and how long they wait"),
    "posting": Command("chats", "a message posted by REST, against a batch of UAMP"),
    "joins": Command("chats", "1,000 people who join a chat within a minute"),
    "workers": Command("processes", "two server processes, against one"),
    "memory": Command("processes", "memory over many turns"),
    "slow_reader": Command("chats", "a client that stops reading, and what the others notice"),
    "growth": Command("data", "chats and databases that have grown, against small ones"),
    "admin_lists": Command("data", "each list of the admin in a database that has grown"),
    "history": Command(
        "data", "the history, searches and the export of a long chat over REST, against a short one"
    ),
    "verify": Command("data", "the check of a long chat's log and signatures, and of its export"),
    "media": Command("data", "how long the worst files take to measure, and in how much memory"),
    "idle": Command("processes", "a process without work, and sessions without work"),
    "ledger": Command("data", "operations of the ledger"),
    "streams": Command("answers", "many answers that stream at once"),
    "runtime": Command("agents", "what the agent runtime adds to a provider's stream"),
    "resume": Command("processes", "how long a killed process is missed"),
    "browser": Command(
        "chats", "the page of a chat in a browser: opening it, and an answer that streams fast"
    ),
    "first_visit": Command("chats", "the first visit of a chat, on a slow phone and a desktop"),
}
AIMS: Final = (
    "turns", "model", "completions", "paid", "fanout", "workers", "memory", "slow_reader",
    "growth", "idle",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command: `turns` by default, or `all` commands with an aim."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    listed = "\n".join(f"  {name:13} {command.measures}" for name, command in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=f"{__doc__}\ncommands:\n{listed}\n  {'all':13}those of the aims: "
        f"{', '.join(AIMS)}\n  {'report':13}write the table and the plot of docs/benchmarks.md",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="python -m benchmarks [COMMAND] [options]",
    )
    if words in (["-h"], ["--help"]):
        parser.print_help()
        return
    command = DEFAULT
    if words and not words[0].startswith("-"):
        command = words.pop(0)
    if command == "all":
        for name in AIMS:
            _run(name, words)
    elif command in COMMANDS or command == "report":
        _run(command, words)
    else:
        parser.error(f"no such command: {command}")


def _run(command: str, arguments: Sequence[str]) -> None:
    where = f"commands.{COMMANDS[command].subject}." if command in COMMANDS else ""
    importlib.import_module(f"benchmarks.{where}{command}").main(arguments)


if __name__ == "__main__":
    # Exit normally, so that the servers are stopped too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    main()
