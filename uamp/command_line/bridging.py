"""`uamp acp`: runs an agent of the server as a program that an editor starts."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from typing import TYPE_CHECKING, Final, NoReturn
from urllib.parse import quote

import click

from uamp.client.client import Client
from uamp.client.errors import ConnectionLostError, NotFoundError, NotPermittedError
from uamp.client.transports.frames import TransportClosed, UpgradeRefused
from uamp.client.transports.web_socket import WebSocketTransport
from uamp.command_line import configuration
from uamp.command_line.completion import complete_agents
from uamp.command_line.options import runs, server_options

if TYPE_CHECKING:
    from uamp.client.transports.frames import FrameTransport

_CONNECT_SECONDS = 30
_PIECE = 65_536
_END: Final = b""


@click.command
@click.argument("agent", shell_complete=complete_agents)
@server_options
@runs
async def acp(agent: str, url: str | None, server: str | None, *, as_json: bool) -> None:
    """Speak the Agent Client Protocol on standard input and output, for editors.

    Editors such as Zed and those of JetBrains start this command and talk to AGENT. The command
    ends when the editor closes its input, or when the connection is lost; answers continue on the
    server, and the editor can load the session again.
    """
    del as_json  # every line is JSON
    chosen = configuration.choose(url=url, name=server)
    async with Client(chosen.url, key=chosen.key) as client:
        # The handshake cannot report what is wrong with a key or a name.
        names = {listing.name.casefold() for listing in await client.agents()}
    if agent.casefold() not in names:
        raise NotFoundError(f"There is no agent {agent!r}.", code="agent_not_found")
    headers = {"Authorization": f"Bearer {chosen.key}"} if chosen.key else {}
    socket = await _open(f"{chosen.url.rstrip('/')}/agents/{quote(agent, safe='')}/acp", headers)
    try:
        await _bridge(socket)
    finally:
        await socket.close()


async def _open(address: str, headers: dict[str, str]) -> FrameTransport:
    try:
        return await WebSocketTransport.open(address, headers, seconds=_CONNECT_SECONDS)
    except UpgradeRefused as refused:
        raise NotPermittedError(
            f"The server refused the connection: {refused}.", code="forbidden"
        ) from None
    except (OSError, TimeoutError) as error:
        raise ConnectionLostError(f"The server could not be reached: {error}.") from error


async def _bridge(socket: FrameTransport) -> None:
    """Pass lines both ways until the editor closes its input; raises ConnectionLostError."""
    tasks = [
        asyncio.create_task(_send_lines(socket)),
        asyncio.create_task(_print_frames(socket)),
    ]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    except TransportClosed as closed:
        raise closed.error or ConnectionLostError(f"The connection was lost: {closed}.") from closed
    finally:
        for task in tasks:
            task.cancel()


async def _send_lines(socket: FrameTransport) -> None:
    """Send the lines of standard input until it is closed. Raises TransportClosed."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[bytes]()

    def read() -> None:
        # Bypass Python's buffer, whose lock this thread would still hold when the program exits.
        partial = b""
        while piece := os.read(sys.stdin.fileno(), _PIECE):
            *complete, partial = (partial + piece).split(b"\n")
            for line in complete:
                loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, _END)

    threading.Thread(target=read, name="standard input", daemon=True).start()
    while (line := await lines.get()) is not _END:
        if line.strip():
            await socket.send(line.decode(errors="replace"), None)


async def _print_frames(socket: FrameTransport) -> NoReturn:
    """Print frames, one per line. Raises TransportClosed."""
    while True:
        frame = await socket.receive()
        # Line feeds in JSON are only between tokens: within strings they are escaped.
        sys.stdout.write(frame.replace("\n", " ") + "\n")
        sys.stdout.flush()
