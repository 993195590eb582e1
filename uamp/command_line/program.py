"""The command `uamp` and its subcommands."""

from __future__ import annotations

import logging
from importlib.metadata import PackageNotFoundError, version

import click

from uamp.command_line.asking import ask, send
from uamp.command_line.bridging import acp
from uamp.command_line.completion import completion
from uamp.command_line.files import export
from uamp.command_line.following import tail
from uamp.command_line.interactive import chat
from uamp.command_line.keys import keys
from uamp.command_line.listing import agents, chats
from uamp.command_line.options import INTERRUPTED
from uamp.command_line.verifying import verify

_PACKAGE = "uamp-server-uamp"


def _version() -> str:
    try:
        return version(_PACKAGE)
    except PackageNotFoundError:
        return "of a checkout"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--verbose", is_flag=True, help="Log what the connection does to standard error.")
@click.version_option(_version(), prog_name="uamp")
def program(*, verbose: bool) -> None:
    """Talk to the people and agents of a server.

    \b
    uamp keys add --url https://chat.example.org
    uamp ask --chat Welcome '@echo hello'

    The server and key come from UAMP_URL and UAMP_KEY, or from `uamp keys add`.

    Exit codes: 0 done, 1 any other error, 2 wrong usage, 3 the key, 4 not found, 5 a payment, 6 no
    answer or a failed one, 7 unreachable or too busy, 8 an incomplete export, 130 Ctrl-C.
    """  # noqa: D301 click reads the character
    level = logging.INFO if verbose else logging.ERROR
    logging.basicConfig(level=level, format="%(name)s: %(message)s")


for command in (chat, ask, tail, send, export, verify, agents, chats, keys, acp, completion):
    program.add_command(command)


def run() -> int:
    """Run the command line and return its exit code."""
    try:
        program.main(prog_name="uamp")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 1
    except KeyboardInterrupt:
        return INTERRUPTED
