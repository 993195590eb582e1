"""`uamp tail`: print the events of a chat as they happen."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from uamp.command_line.completion import complete_chats
from uamp.command_line.options import client_of, runs, server_options
from uamp.command_line.output import print_event, print_json, printable
from uamp.events import (
    MessageCreated,
    ParticipantJoined,
    ParticipantLeft,
    ResponseCancelled,
    ResponseCreated,
    ResponseError,
)

if TYPE_CHECKING:
    from uamp.events.base import Event

_MAX_HISTORY = 1_000


@click.command
@click.argument("chat", shell_complete=complete_chats)
@click.option(
    "--lines",
    "-n",
    type=click.IntRange(0, _MAX_HISTORY),
    default=10,
    show_default=True,
    help="How many earlier messages to print first.",
)
@server_options
@runs
async def tail(
    chat: str, lines: int, url: str | None, server: str | None, *, as_json: bool
) -> None:
    """Print the last messages of a chat, then follow it until Ctrl-C.

    With --json each line is an event of the protocol. After a lost connection, the events missed in
    the meantime are printed.
    """
    async with client_of(url, server) as client:
        conversation = await client.chat(chat)
        events = conversation.events()
        earlier = [
            message async for message in conversation.history(limit=lines, newest_first=True)
        ]
        for message in reversed(earlier):
            if as_json:
                print_json({"type": "message", "message": message})
            else:
                print_message(message.name, message.content, message.created_at)
        printed = {message.id for message in earlier}
        async for event in events:
            if isinstance(event, MessageCreated) and event.message.id in printed:
                continue
            if as_json:
                print_event(event)
            else:
                print_happening(event)


def print_happening(event: Event) -> None:
    """Print an event if members of the chat should know of it."""
    match event:
        case MessageCreated(message=message):
            at = datetime.fromtimestamp(message.created_at / 1000, UTC)
            print_message(message.name or message.role, message.content, at)
        case ResponseCreated(agent=agent):
            click.echo(click.style(f"  {printable(agent or 'An agent')} answers …", dim=True))
        case ResponseError(error=error):
            click.echo(f"  The answer failed: {printable(error.message or error.code)}", err=True)
        case ResponseCancelled(username=username):
            by = f" by {printable(username)}" if username else ""
            click.echo(f"  The answer was cancelled{by}.", err=True)
        case ParticipantJoined() | ParticipantLeft():
            did = "joined" if isinstance(event, ParticipantJoined) else "left"
            click.echo(click.style(f"  {printable(event.participant.name)} {did}", dim=True))


def print_message(name: str, text: str, at: datetime) -> None:
    """Print a message under its time in the local time zone."""
    time = at.astimezone().strftime("%H:%M")
    head = click.style(f"{time} {printable(name)}", bold=True)
    click.echo(f"{head}  {printable(text)}")
