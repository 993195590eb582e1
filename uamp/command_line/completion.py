"""Shell completion: commands by click, names of chats and agents from the server."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem, get_completion_class

from uamp.client.errors import ClientError
from uamp.command_line.options import client_of

if TYPE_CHECKING:
    from uamp.client.client import Client

# A person waits at the keyboard for a completion.
_SECONDS = 1.5
_MAX_SUGGESTIONS = 100
# bash inserts a suggestion as it is, and would run what another member put into a title.
_SAFE = re.compile(r"(?!-)[\w ,.:@+-]+")


def complete_chats(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the titles of the person's chats that start with the incomplete text."""

    async def titles(client: Client) -> list[str]:
        return [chat.title async for chat in client.chats(limit=_MAX_SUGGESTIONS)]

    return _complete(context, titles, incomplete)


def complete_agents(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the names of the agents that start with the incomplete text."""

    async def names(client: Client) -> list[str]:
        return [agent.name for agent in await client.agents()]

    return _complete(context, names, incomplete)


def _complete(context: click.Context, read: object, incomplete: str) -> list[CompletionItem]:
    async def fetch() -> list[str]:
        options = context.params
        async with client_of(options.get("url"), options.get("server"), timeout=_SECONDS) as client:
            async with asyncio.timeout(_SECONDS):
                return await read(client)  # type: ignore[operator, no-any-return]

    try:
        names = asyncio.run(fetch())
    except (ClientError, TimeoutError):
        return []  # a shell cannot show an error here; the command itself reports it
    begin = incomplete.casefold()
    return [
        CompletionItem(name)
        for name in names
        if name.casefold().startswith(begin) and _SAFE.fullmatch(name)
    ]


@click.command
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    \b
    uamp completion bash >> ~/.bashrc
    uamp completion zsh >> ~/.zshrc
    uamp completion fish > ~/.config/fish/completions/uamp.fish
    """  # noqa: D301 click reads the character
    completion_class = get_completion_class(shell)
    root = context.find_root().command
    if completion_class is None:
        raise click.UsageError(f"Completion is not available for {shell}.")
    click.echo(completion_class(root, {}, "uamp", "_UAMP_COMPLETE").source())
