"""Frames of one turn of the loop are one write, in order, and those that wsproto would make."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import pytest
import uvicorn
from wsproto import ConnectionType
from wsproto.connection import Connection
from wsproto.events import TextMessage

from uamp_project.servers.joined_writes import JOINED_BYTES, JoinedWrites, text_frame
from uamp_project.servers.uvicorn_protocols import TESTED_UVICORN

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Recorded(asyncio.Protocol):
    """A server's side of a socket."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport


class Writes:
    """A transport that was connected, joined, and how often it was written to."""

    def __init__(self, transport: asyncio.Transport, client: socket.socket) -> None:
        self.sizes: list[int] = []
        self.client = client
        self._write = transport.write
        transport.write = self._counted  # type: ignore[method-assign]
        self.joined = JoinedWrites(transport, asyncio.get_running_loop())

    def _counted(self, data: bytes | bytearray | memoryview) -> None:
        self.sizes.append(len(data))
        self._write(data)

    async def received(self) -> bytes:
        """Return all that the client gets until the end."""
        loop, parts = asyncio.get_running_loop(), []
        async with asyncio.timeout(5):
            while part := await loop.sock_recv(self.client, 1 << 16):
                parts.append(part)
        return b"".join(parts)


@pytest.fixture
async def writes() -> AsyncIterator[Writes]:
    """Return a joined transport with a client at its other end."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)  # noqa: FBT003 the name of the argument is flag
    transport, _ = await asyncio.get_running_loop().create_connection(Recorded, sock=ours)
    with theirs:
        yield Writes(transport, theirs)
        transport.abort()
        await asyncio.sleep(0)


async def test_what_is_written_in_one_turn_of_the_loop_is_one_write(writes: Writes) -> None:
    writes.joined.write(b"one")
    writes.joined.write(b"two")
    assert writes.sizes == []
    await asyncio.sleep(0)
    writes.joined.write(b"three")
    await asyncio.sleep(0)
    assert writes.sizes == [6, 5]


async def test_unwritten_bytes_count_as_buffered(writes: Writes) -> None:
    writes.joined.write(b"one")
    writes.joined.write(b"two")
    assert writes.joined.get_write_buffer_size() == 6
    await asyncio.sleep(0)
    assert writes.joined.get_write_buffer_size() == 0


async def test_close_comes_after_what_was_written(writes: Writes) -> None:
    writes.joined.write(b"one")
    writes.joined.write(b"two")
    writes.joined.close()
    assert writes.joined.is_closing()
    assert await writes.received() == b"onetwo"


async def test_abort_drops_what_was_written(writes: Writes) -> None:
    writes.joined.write(b"one")
    writes.joined.abort()
    await asyncio.sleep(0)
    assert (writes.sizes, await writes.received()) == ([], b"")


async def test_what_is_joined_is_bounded(writes: Writes) -> None:
    writes.joined.write(b"x")
    writes.joined.write(b"x" * JOINED_BYTES)
    # At once, so that the transport can ask for a pause before more is written.
    assert writes.sizes == [JOINED_BYTES + 1]
    await asyncio.sleep(0)
    assert writes.sizes == [JOINED_BYTES + 1]


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65_535, 65_536, 70_000])
def test_a_frame_is_the_one_that_wsproto_makes(size: int) -> None:
    text = "é" * (size // 2) + "e" * (size % 2)
    assert text_frame(text) == Connection(ConnectionType.SERVER).send(TextMessage(data=text))


def test_the_installed_uvicorn_is_the_tested_one() -> None:
    """With another version sockets work, but uvicorn sends each frame by itself.

    Read what its `WSProtocol.send` asks before it sends a message, compare it with
    `WebSocketProtocol._may_send`, and name the version in TESTED_UVICORN.
    """
    assert uvicorn.__version__ == TESTED_UVICORN
