"""The command `python -m uap` and its subcommand `serve`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import signal
from typing import TYPE_CHECKING, Final

import click

from uamp.client.errors import (
    ClientError,
    ConnectionLostError,
    NotFoundError,
    NotPermittedError,
    UnauthorizedError,
)
from uap.serving.addresses import NotAnAddress, ServerAddress, read_address
from uap.serving.daemon import Daemon, ServedAgent
from uap.serving.loading import AgentNotLoaded, default_name, load

if TYPE_CHECKING:
    from collections.abc import Sequence

EXIT_CODES: Final[list[tuple[int, tuple[type[ClientError], ...]]]] = [
    (3, (UnauthorizedError, NotPermittedError)),
    (4, (NotFoundError,)),
    (7, (ConnectionLostError,)),
]
"""The exit codes besides 0 (stopped), 1 (other errors), 2 (usage) and 130 (Ctrl-C twice)."""
INTERRUPTED: Final = 130
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def program() -> None:
    """Tools for uap agents."""


@program.command()
@click.argument("agents", nargs=-1, required=True, metavar="MODULE:AGENT...")
@click.option(
    "--connect",
    "url",
    required=True,
    envvar="UAMP_CONNECT_URL",
    metavar="URL",
    help="The server, such as wss://chat.example.org. Or set UAMP_CONNECT_URL.",
)
@click.option(
    "--token",
    "tokens",
    multiple=True,
    envvar="UAMP_CONNECT_TOKEN",
    metavar="TOKEN",
    help="The connect token that the browser shows once. Other users of the machine can read the"
    " options of a command: set UAMP_CONNECT_TOKEN instead. With several agents, give one token"
    " for all or one for each in order; separate them by spaces in the variable.",
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="NAME",
    help="The name of the agent on the server; with several agents, one for each in order."
    "  [default: the name of AGENT]",
)
@click.option(
    "--answers",
    "max_answers",
    type=click.IntRange(1, 1000),
    default=16,
    show_default=True,
    help="How many answers may run at once; as many more may wait.",
)
@click.option(
    "--drain-seconds",
    type=click.FloatRange(0, 3600),
    default=20.0,
    show_default=True,
    help="How long running answers may take to finish after SIGTERM or Ctrl-C.",
)
@click.option("--verbose", is_flag=True, help="Log what the connection and the agents do.")
def serve(
    *,
    agents: tuple[str, ...],
    url: str,
    tokens: tuple[str, ...],
    names: tuple[str, ...],
    max_answers: int,
    drain_seconds: float,
    verbose: bool,
) -> None:
    """Answer for agents in the chats of a server, from this machine.

    \b
    UAMP_CONNECT_TOKEN=uak_... python -m uap serve my_agent:agent \\
        --connect wss://chat.example.org --name my-agent

    MODULE:AGENT is an agent that `uap.agent()` made, or a function that returns one. The machine
    needs no public address: it connects to the server, and reconnects after a lost connection.

    Exit codes: 0 stopped by SIGTERM or Ctrl-C, 1 another error, 2 wrong usage, 3 the token is
    refused, 4 no such server path or agent, 7 the server was never reached, 130 Ctrl-C twice.
    """  # noqa: D301 click reads the character
    level = logging.INFO if verbose else logging.WARNING
    logging.basicConfig(level=level, format="%(name)s: %(message)s")
    try:
        address = read_address(url)
    except NotAnAddress as error:
        raise click.BadParameter(str(error), param_hint="--connect") from None
    agents_by_name = _load_agents(agents, tokens, names)
    if address.is_exposed:
        _say(f"{address.display} is not encrypted: others on the network can read the token")
    try:
        code = asyncio.run(_serve(agents_by_name, address, max_answers, drain_seconds))
    except ClientError as error:
        _say(error.message)
        if error.what_to_do:
            _say(error.what_to_do)
        code = next((code for code, kinds in EXIT_CODES if isinstance(error, kinds)), 1)
    except KeyboardInterrupt:
        code = INTERRUPTED
    click.get_current_context().exit(code)


def _load_agents(
    places: Sequence[str], tokens: Sequence[str], names: Sequence[str]
) -> dict[str, ServedAgent]:
    if not tokens or not all(tokens):
        raise click.UsageError("Set UAMP_CONNECT_TOKEN to the connect token, or use --token.")
    if len(tokens) not in {1, len(places)}:
        raise click.UsageError("Give one token for all agents, or one for each.")
    if names and len(names) != len(places):
        raise click.UsageError("Give a name for each agent, or none.")
    every = tokens if len(tokens) > 1 else [*tokens] * len(places)
    agents: dict[str, ServedAgent] = {}
    for place, name, token in zip(places, names or map(default_name, places), every, strict=True):
        if name in agents:
            raise click.UsageError(f"Two agents have the name {name}.")
        try:
            agents[name] = ServedAgent(name=name, token=token, bot=load(place))
        except AgentNotLoaded as error:
            raise click.UsageError(str(error)) from error
    return agents


async def _serve(
    agents: dict[str, ServedAgent], address: ServerAddress, max_answers: int, drain_seconds: float
) -> int:
    daemon = Daemon(
        agents, address, max_answers=max_answers, drain_seconds=drain_seconds, report=_say
    )
    running = asyncio.create_task(daemon.run())

    def stop() -> None:
        if daemon.is_stopping:
            running.cancel()
        daemon.stop()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C ends it at once
            loop.add_signal_handler(number, stop)
    try:
        await running
    except asyncio.CancelledError:
        return INTERRUPTED
    _say("stopped")
    return 0


def _say(text: str) -> None:
    click.echo(f"uap: {_CONTROLS.sub(' ', text)}", err=True)


def run() -> int:
    """Run the command line and return its exit code."""
    try:
        program.main(prog_name="python -m uap")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 1
