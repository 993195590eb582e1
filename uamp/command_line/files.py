"""`uamp export`: save a chat to a file."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

import click

from uamp.client.exports import ExportCheck
from uamp.command_line.completion import complete_chats
from uamp.command_line.options import client_of, runs, server_options
from uamp.command_line.output import print_json

_NOT_IN_NAMES: Final = re.compile(r"[^\w. -]+")


def file_name(title: str) -> str:
    """Return the name of a file for a chat, in the current folder whatever the server says."""
    return f"{_NOT_IN_NAMES.sub('_', title).strip(' .') or 'chat'}.ndjson"


@click.command
@click.argument("chat", shell_complete=complete_chats)
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    help="Where to write it, `-` for standard output; by default the title of the chat.",
)
@server_options
@runs
async def export(
    chat: str, output: str | None, url: str | None, server: str | None, *, as_json: bool
) -> None:
    """Export a chat to an NDJSON file and check that it is complete.

    A file cut off in transfer is deleted; on standard output it ends without its last
    line, and the exit code is 8.
    """
    async with client_of(url, server) as client:
        target = await client.find_chat(chat)
        if output == "-":
            out = sys.stdout.buffer
            with ExportCheck() as check:
                async for line in client.export_lines(target.id):
                    check.add(line)
                    out.write(line)
                out.flush()
                check.finish()
            return
        path = Path(output or file_name(target.title or target.id))
        summary = await client.export(target.id, path)
    if as_json:
        print_json({"file": str(path), "count": summary.count, "sha256": summary.sha256})
    else:
        click.echo(f"{path}: {summary.count} messages, SHA-256 {summary.sha256}")
