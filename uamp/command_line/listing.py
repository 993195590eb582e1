"""`uamp agents` and `uamp chats`: list the agents and chats to talk to."""

from __future__ import annotations

import click

from uamp.command_line.options import client_of, runs, server_options
from uamp.command_line.output import print_json, print_rows


@click.command
@server_options
@runs
async def agents(url: str | None, server: str | None, *, as_json: bool) -> None:
    """List the agents that you may use, with their prices."""
    async with client_of(url, server) as client:
        rows = []
        for agent in await client.agents():
            if as_json:
                print_json(agent)
            price = agent.pricing
            asks = f"{price.per_answer} {price.currency} an answer" if price else "free"
            rows.append((f"@{agent.name}", asks, agent.description.partition("\n")[0]))
    if rows and not as_json:
        print_rows(rows)


@click.command
@click.option("--all", "everything", is_flag=True, help="Include private sessions.")
@server_options
@runs
async def chats(url: str | None, server: str | None, *, everything: bool, as_json: bool) -> None:
    """List your chats, latest first."""
    async with client_of(url, server) as client:
        rows = []
        async for chat in client.chats(kind="all" if everything else "group"):
            if as_json:
                print_json(chat)
            unread = f"{chat.unread} unread" if chat.unread else ""
            rows.append((chat.id, f"{chat.latest_at:%Y-%m-%d %H:%M}", chat.title, unread))
    if rows and not as_json:
        print_rows(rows)
