"""`uamp keys`: manage the servers and keys saved on this machine."""

from __future__ import annotations

import asyncio
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from uamp.client.client import DEFAULT_URL, Client
from uamp.client.errors import ClientError, InvalidRequestError
from uamp.command_line import configuration
from uamp.command_line.configuration import SavedServer
from uamp.command_line.options import client_of, exit_code, runs, server_options
from uamp.command_line.output import print_error, print_json, print_rows, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print lines of JSON.")
_SHOWN = 12


@click.group
def keys() -> None:
    """Save keys for servers, choose the one to use, and create new keys.

    Create your first key on the server's page /account. Saved keys are in
    ~/.config/uamp/servers.json, which only you may read. UAMP_URL and UAMP_KEY in the environment
    take precedence over saved keys.
    """


@keys.command
@click.argument("name", default="default")
@click.option("--url", metavar="URL", default=DEFAULT_URL, show_default=True, help="The server.")
@AS_JSON
def add(name: str, url: str, *, as_json: bool) -> None:
    """Save a key under NAME, and use it from now on.

    The command asks for the key, or reads it from standard input: `uamp keys add < key.txt`. It
    tries the key before saving it.
    """
    is_person = sys.stdin.isatty()
    key = click.prompt("Key", hide_input=True, err=True) if is_person else sys.stdin.readline()
    with _reporting(as_json=as_json):
        if not (key := key.strip()):
            raise InvalidRequestError("No key was given.", code="no_key")
        address, username = asyncio.run(_signed_in(url, key))
        saved = configuration.load()
        saved.servers[name] = SavedServer(url=address, key=key)
        saved.current = name
        path = configuration.save(saved)
        if as_json:
            print_json({"name": name, "url": address, "username": username, "file": str(path)})
        else:
            click.echo(f"{name}: {printable(username)} at {address}, saved in {path}")


@keys.command("list")
@AS_JSON
def list_keys(*, as_json: bool) -> None:
    """List the saved servers; `*` marks the one in use."""
    with _reporting(as_json=as_json):
        saved = configuration.load()
        rows = []
        for name, server in saved.servers.items():
            begin = f"{server.key[:_SHOWN]}…"
            is_current = name == saved.current
            if as_json:
                print_json({"name": name, "url": server.url, "key": begin, "current": is_current})
            rows.append(("*" if is_current else " ", name, server.url, begin))
        if rows and not as_json:
            print_rows(rows)


@keys.command
@click.argument("name")
@AS_JSON
def use(name: str, *, as_json: bool) -> None:
    """Use the server NAME from now on."""
    with _reporting(as_json=as_json):
        configuration.choose(url=None, name=name)
        saved = configuration.load()
        saved.current = name
        configuration.save(saved)


@keys.command
@click.argument("name")
@AS_JSON
def remove(name: str, *, as_json: bool) -> None:
    """Forget the server NAME on this machine.

    The key stays valid: revoke it on the page /account.
    """
    with _reporting(as_json=as_json):
        configuration.choose(url=None, name=name)
        saved = configuration.load()
        del saved.servers[name]
        saved.current = "" if saved.current == name else saved.current
        configuration.save(saved)


@keys.command
@server_options
@runs
async def issued(url: str | None, server: str | None, *, as_json: bool) -> None:
    """List your active keys on the server."""
    async with client_of(url, server) as client:
        rows = []
        for key in await client.keys():
            if as_json:
                print_json(key)
            usage = f"used {key.used_at:%Y-%m-%d}" if key.used_at else "not used"
            rows.append((key.id, key.prefix, key.name, " ".join(key.scopes), usage))
    if rows and not as_json:
        print_rows(rows)


@keys.command
@click.argument("name")
@click.option("--scope", "scopes", multiple=True, required=True, help="A right, such as chats:*.")
@click.option("--chat", "chats", multiple=True, help="The id of a chat to restrict the key to.")
@click.option("--agent", "agents", multiple=True, help="The id of an agent to restrict the key to.")
@server_options
@runs
async def create(
    name: str,
    scopes: tuple[str, ...],
    chats: tuple[str, ...],
    agents: tuple[str, ...],
    url: str | None,
    server: str | None,
    *,
    as_json: bool,
) -> None:
    """Create a key on the server, with rights of the key in use, and print its secret once."""
    async with client_of(url, server) as client:
        key = await client.create_key(
            name, scopes=scopes, chats=chats or None, agents=agents or None
        )
    print_json(key) if as_json else click.echo(key.secret)


@keys.command
@click.argument("key_id")
@click.option(
    "--keep",
    type=click.IntRange(0, 7 * 86_400),
    default=0,
    show_default=True,
    help="How many seconds the previous secret stays valid.",
)
@server_options
@runs
async def rotate(
    key_id: str, keep: int, url: str | None, server: str | None, *, as_json: bool
) -> None:
    """Give a key on the server a new secret, and print it once."""
    async with client_of(url, server) as client:
        key = await client.rotate_key(key_id, keep_seconds=keep)
    print_json(key) if as_json else click.echo(key.secret)


@keys.command
@click.argument("key_id")
@server_options
@runs
async def revoke(key_id: str, url: str | None, server: str | None, *, as_json: bool) -> None:
    """Revoke a key on the server; its connections and requests end within seconds."""
    async with client_of(url, server) as client:
        await client.revoke_key(key_id)
    if as_json:
        print_json({"revoked": key_id})


async def _signed_in(url: str, key: str) -> tuple[str, str]:
    """Return the address and the person of a key. Raises ClientError if it is refused."""
    async with Client(url, key=key) as client:
        return client.url, (await client.me()).username


@contextmanager
def _reporting(*, as_json: bool) -> Iterator[None]:
    """End the command with the exit code of a ClientError."""
    try:
        yield
    except ClientError as error:
        print_error(error, as_json=as_json)
        click.get_current_context().exit(exit_code(error))
