"""`uamp ask` and `uamp send`: send one message, and print its answers or not."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from uamp.client.errors import NoAnswerError
from uamp.command_line.completion import complete_agents, complete_chats
from uamp.command_line.options import (
    agree,
    approve,
    asks_person,
    client_of,
    paying_options,
    runs,
    server_options,
)
from uamp.command_line.output import AnswerPrinter, print_event, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from uamp.client.turn import AskedTurn

FILES = click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file to attach; may be repeated.",
)


@click.command
@click.argument("text", nargs=-1)
@click.option(
    "--chat", metavar="CHAT", shell_complete=complete_chats, help="A chat, by title or id."
)
@click.option(
    "--agent", metavar="NAME", shell_complete=complete_agents, help="An agent to ask privately."
)
@FILES
@click.option(
    "--seconds",
    type=click.FloatRange(1),
    default=600,
    show_default=True,
    help="How long to wait for the next piece of the answer.",
)
@paying_options
@server_options
@runs
async def ask(
    text: Sequence[str],
    chat: str | None,
    agent: str | None,
    files: Sequence[Path],
    seconds: float,
    pay_up_to: str | None,
    url: str | None,
    server: str | None,
    *,
    as_json: bool,
) -> None:
    """Send a message and print the answers as they grow.

    TEXT is read from standard input if it is missing or `-`. Ctrl-C cancels the answer.

    \b
    uamp ask --chat Welcome '@echo hello'
    git diff | uamp ask --agent assistant 'What does this change?' -
    """  # noqa: D301 click reads the character
    if (chat is None) == (agent is None):
        raise click.UsageError("Specify either --chat or --agent.")
    words = message_of(text)
    has_person = asks_person(as_json=as_json)
    async with client_of(
        url,
        server,
        pay_up_to=pay_up_to,
        agree=agree if has_person else None,
        approve=approve if has_person else None,
    ) as client:
        conversation = await (client.chat(chat) if chat is not None else client.agent(str(agent)))
        await show(conversation.ask(words, files=files, seconds=seconds), as_json=as_json)


@click.command
@click.argument("chat", shell_complete=complete_chats)
@click.argument("text", nargs=-1)
@FILES
@server_options
@runs
async def send(
    chat: str,
    text: Sequence[str],
    files: Sequence[Path],
    url: str | None,
    server: str | None,
    *,
    as_json: bool,
) -> None:
    """Send a message to a chat, without waiting for answers, and print its id.

    CHAT is a title or an id. TEXT is read from standard input if it is missing or `-`.
    """
    words = message_of(text)
    async with client_of(url, server) as client:
        target = await client.find_chat(chat)
        message = await client.send_message(target.id, words, files=files)
        if as_json:
            print_json(message)
        else:
            click.echo(message.id)


async def show(turn: AskedTurn, *, as_json: bool) -> None:
    """Print a turn's answers until they have ended; Ctrl-C cancels them."""
    printer = AnswerPrinter()
    try:
        async for piece in turn:
            if as_json:
                print_event(piece.event)
            else:
                printer.add(piece)
        if not turn.answers:
            raise NoAnswerError
    except asyncio.CancelledError:
        printer.end_line()
        await turn.cancel(3)
        click.echo("The answer was cancelled.", err=True)
        raise
    finally:
        printer.end_line()


def message_of(text: Sequence[str]) -> str:
    """Return a message's text from its arguments, with standard input for `-` or no arguments."""
    words = list(text)
    if words and "-" not in words:
        return " ".join(words)
    if not words and sys.stdin.isatty():
        raise click.UsageError("Write the message after the command, or pipe it in.")
    piped = sys.stdin.read()
    before = " ".join(word for word in words if word != "-")
    message = f"{before}\n\n{piped}" if before else piped
    if not message.strip():
        raise click.UsageError("The message is empty.")
    return message.rstrip("\n")
