"""A small HTTP server on a real socket that answers as a test says."""

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


@dataclass
class Exchange:
    """One connection: the requests, and the ways to answer."""

    head: str
    body: dict[str, Any]
    writer: asyncio.StreamWriter
    reader: asyncio.StreamReader
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, data: bytes) -> None:
        """Send bytes now."""
        self.writer.write(data)
        await self.writer.drain()

    async def chunk(self, **members: Any) -> None:
        """Send one completion chunk."""
        await self.send(b"data: " + json.dumps(members).encode() + b"\n\n")

    async def event(self, kind: str, **members: Any) -> None:
        """Send one event as Anthropic does: its name twice."""
        data = json.dumps({"type": kind, **members}).encode()
        await self.send(b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n")

    async def delta(self, **delta: Any) -> None:
        """Send a chunk with a delta."""
        await self.chunk(id="chatcmpl-1", choices=[{"index": 0, "delta": delta}])

    async def finish(self, reason: str = "stop") -> None:
        """Send the end as a well-behaved server does."""
        await self.chunk(id="chatcmpl-1", choices=[{"delta": {}, "finish_reason": reason}])
        await self.send(b"data: [DONE]\n\n")

    async def refuse(self, status: str, body: bytes, *headers: str) -> None:
        """Send a complete answer."""
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
        await self.send("\r\n".join(lines).encode() + body)


Answer = Callable[[Exchange], Awaitable[None]]


@dataclass
class WireServer:
    """The address of the server and the requests that it was sent."""

    url: str
    port: int = 0
    exchanges: list[Exchange] = field(default_factory=list)

    def connector(self, **options: Any) -> aiohttp.TCPConnector:
        """Return a connector for which every host and port is this server."""
        return aiohttp.TCPConnector(resolver=_OneServer(self.port), **options)


class _OneServer(AbstractResolver):
    def __init__(self, port: int) -> None:
        self._port = port

    async def resolve(
        self,
        host: str,
        port: int = 0,  # noqa: ARG002 the signature of aiohttp
        family: socket.AddressFamily = socket.AF_INET,  # noqa: ARG002 as above
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host="127.0.0.1",
                port=self._port,
                family=socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
        ]

    async def close(self) -> None:
        pass


@asynccontextmanager
async def serve(answer: Answer, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[WireServer]:
    """Answer every request with `answer`, and close the connection after it."""
    tasks: set[asyncio.Task[None]] = set()
    wire = WireServer(url="")

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A client may connect and leave without a request.
        with closing(writer), suppress(asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            lengths = (
                int(line.split(":")[1])
                for line in head.split("\r\n")
                if line.lower().startswith("content-length:")
            )
            body = json.loads(await reader.readexactly(next(lengths, 0)) or b"{}")
            exchange = Exchange(head=head, body=body, writer=writer, reader=reader)
            wire.exchanges.append(exchange)
            await respond(exchange)

    async def respond(exchange: Exchange) -> None:
        async def watch() -> None:
            with suppress(ConnectionError):
                await exchange.reader.read()
            exchange.gone.set()

        watching = asyncio.create_task(watch())
        try:
            with suppress(ConnectionError):
                await answer(exchange)
        finally:
            exchange.writer.close()
            watching.cancel()
            await asyncio.wait([watching], timeout=60)

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(handle(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    wire.port = server.sockets[0].getsockname()[1]
    wire.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{wire.port}/v1"
    try:
        yield wire
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=60)
