"""The client process: N sockets in closed loops, each with its own session, on a raw protocol.

`python -m benchmarks.clients.turns` reads one line of JSON (see `Order`) and prints lines: `begin`
and `end` mark the measured time, and the last line is the result as JSON. To stay cheap, it parses
only the type of a frame. `t=<ns>` in a model's first delta is the time when the model wrote it, on
the clock shared by all processes of a machine.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import resource
import statistics
import struct
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SWITCHING = b"HTTP/1.1 101"
OK = b"HTTP/1.1 20"
LENGTH = b"\r\ncontent-length: "
TEXT, CLOSE, PING = 1, 8, 9
SHORT, LONG = 126, 127
TIMEOUT_SECONDS = 60


@dataclass(frozen=True, kw_only=True)
class Order:
    """Open `sockets` at `path`, and run turns for `seconds` after `warm`."""

    port: int
    path: str = "/uamp"
    token: str = ""
    session: dict[str, Any] = field(default_factory=dict)
    text: str = ""
    sockets: int = 1
    warm: float = 1.0
    seconds: float = 3.0
    record: bool = False
    at_once: int = 16
    # One frame with the whole history, which the reference answers without a stored conversation.
    stateless: bool = False
    # Streams of Chat Completions over HTTP instead of sockets.
    http: bool = False
    # A marker found in the first delta of such a stream but in no earlier frame.
    first: str = "data: "
    # What to post over HTTP instead of a completion with the text.
    body: Any = None


def since_model(payload: bytes | bytearray) -> float | None:
    """Return the seconds since a model wrote a delta, or None if it does not carry its time."""
    at = payload.find(b"t=")
    if at < 0:
        return None
    digits = bytes(payload[at + 2 : at + 22]).split(b" ")[0]
    return time.perf_counter() - int(digits) / 1e9 if digits.isdigit() else None


def text_frame(payload: bytes) -> bytes:
    """Return a client's frame; its mask of zeros leaves the payload unchanged."""
    size = len(payload)
    if size < SHORT:
        head = struct.pack("!BB", 0x81, 0x80 | size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", 0x81, 0x80 | SHORT, size)
    else:
        head = struct.pack("!BBQ", 0x81, 0x80 | LONG, size)
    return head + bytes(4) + payload


class Socket(asyncio.Protocol):
    """One WebSocket connection with one session."""

    def __init__(self, order: Order, number: int) -> None:
        self.latencies: list[float] = []
        self.first_deltas: list[float] = []
        self.after_model: list[float] = []
        self.recorded: list[str] = []
        self.opened = asyncio.get_running_loop().create_future()
        self.stopped = asyncio.get_running_loop().create_future()
        self.running = False
        self.opening = 0.0
        self._order = order
        self._number = number
        self._turn = 0
        self._buffer = bytearray()
        self._upgraded = False
        self._asked_at = 0.0
        self._received = False

    def connection_made(self, transport: Any) -> None:
        """Request the upgrade."""
        self._transport = transport
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [
            f"GET {self._order.path} HTTP/1.1",
            f"Host: 127.0.0.1:{self._order.port}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {key}",
            "Sec-WebSocket-Version: 13",
        ]
        if self._order.token:
            lines.append(f"Authorization: Bearer {self._order.token}")
        transport.write(("\r\n".join(lines) + "\r\n\r\n").encode())

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the pending futures."""
        for future in (self.opened, self.stopped):
            if not future.done():
                future.set_exception(ConnectionError(f"the server closed the socket: {exc}"))
                future.exception()

    def data_received(self, data: bytes) -> None:
        """Process frames."""
        buffer = self._buffer
        buffer += data
        if not self._upgraded:
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            if not buffer.startswith(SWITCHING):
                self._fail(bytes(buffer[:end]))
                return
            del buffer[: end + 4]
            self._upgraded = True
            self._send({"type": "session.create", "uamp_version": "1.0", **self._order.session})
        at = 0
        while len(buffer) - at >= 2:
            size, start = buffer[at + 1], at + 2
            if size == SHORT:
                if len(buffer) < at + 4:
                    break
                size, start = int.from_bytes(buffer[at + 2 : at + 4]), at + 4
            elif size == LONG:
                if len(buffer) < at + 10:
                    break
                size, start = int.from_bytes(buffer[at + 2 : at + 10]), at + 10
            if len(buffer) < start + size:
                break
            self._frame(buffer[at] & 15, buffer[start : start + size])
            at = start + size
        del buffer[:at]

    def _frame(self, opcode: int, payload: bytearray) -> None:
        if opcode == PING:
            self._transport.write(
                struct.pack("!BB", 0x8A, 0x80 | len(payload)) + bytes(4) + payload
            )
        elif opcode == CLOSE:
            self._fail(bytes(payload))
        elif opcode == TEXT:
            self._event(payload)

    def _event(self, payload: bytearray) -> None:
        if self._order.record and self._turn:
            self.recorded.append(payload.decode())
        kind = bytes(payload[9 : payload.index(b'"', 9)])
        if kind == b"response.delta":
            if not self._received:
                self._first_delta(payload)
        elif kind == b"response.done":
            self.latencies.append(time.perf_counter() - self._asked_at)
            if self.running:
                self.ask()
            elif not self.stopped.done():
                self.stopped.set_result(None)
        elif kind == b"capabilities" or (kind == b"session.created" and b"floor" in payload):
            if not self.opened.done():
                self.opened.set_result(None)
        elif kind in {b"session.error", b"response.error", b"response.cancelled"}:
            self._fail(bytes(payload))

    def _first_delta(self, payload: bytearray) -> None:
        self._received = True
        self.first_deltas.append(time.perf_counter() - self._asked_at)
        since = since_model(payload)
        if since is not None:
            self.after_model.append(since)

    def _fail(self, reason: bytes) -> None:
        error = RuntimeError(reason.decode(errors="replace"))
        for future in (self.opened, self.stopped):
            if not future.done():
                future.set_exception(error)
                future.exception()

    def ask(self) -> None:
        """Begin a turn: two frames in one write, or a single frame for a stateless turn."""
        self._turn += 1
        self._received = False
        name = f"{self._number}-{self._turn}"
        text = self._order.text
        events: list[dict[str, Any]] = [
            {"type": "input.text", "event_id": f"i{name}", "text": text},
        ]
        if self._order.stateless:
            events[0]["messages"] = [{"role": "user", "content": text}]
        else:
            events.append({"type": "response.create", "event_id": f"c{name}"})
        frames = b"".join(text_frame(json.dumps(event).encode()) for event in events)
        self._asked_at = time.perf_counter()
        self._transport.write(frames)

    def _send(self, event: dict[str, Any]) -> None:
        event.setdefault("event_id", f"o{self._number}")
        self._transport.write(text_frame(json.dumps(event).encode()))

    def close(self) -> None:
        """Close the connection without a close frame."""
        self._transport.abort()


def is_whole(answer: bytes | bytearray) -> bool:
    """Return whether a response has arrived, in chunks or with its length."""
    head, end, body = answer.partition(b"\r\n\r\n")
    _, has_length, length = head.lower().partition(LENGTH)
    if not has_length:
        return answer.endswith(b"\r\n0\r\n\r\n")
    return bool(end) and len(body) >= int(length.partition(b"\r\n")[0])


class HttpStream(asyncio.Protocol):
    """One HTTP connection with one request after another, such as streams of Chat Completions."""

    def __init__(self, order: Order, _number: int) -> None:
        loop = asyncio.get_running_loop()
        self.latencies: list[float] = []
        self.first_deltas: list[float] = []
        self.after_model: list[float] = []
        self.recorded: list[str] = []
        self.opened = loop.create_future()
        self.stopped = loop.create_future()
        self.running = False
        self.opening = 0.0
        body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": order.text}]}
        encoded = json.dumps(body if order.body is None else order.body).encode()
        key = f"Authorization: Bearer {order.token}\r\n" if order.token else ""
        head = (
            f"POST {order.path} HTTP/1.1\r\nHost: 127.0.0.1:{order.port}\r\n{key}"
            f"Content-Type: application/json\r\nContent-Length: {len(encoded)}\r\n\r\n"
        )
        self._request = head.encode() + encoded
        self._path = order.path
        self._first = order.first.encode()
        self._answer = bytearray()
        self._asked_at = 0.0
        self._received = False

    def connection_made(self, transport: Any) -> None:
        """Signal that the connection is ready."""
        self._transport = transport
        self.opened.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the current turn."""
        if not self.stopped.done():
            self.stopped.set_exception(
                ConnectionError(
                    f"the server of {self._path} closed after {len(self._answer)} bytes: {exc}"
                )
            )
            self.stopped.exception()

    def data_received(self, data: bytes) -> None:
        """Process part of a response; its end ends the turn."""
        self._answer += data
        if not self._answer.startswith(OK[: len(self._answer)]):
            if not self.stopped.done():
                self.stopped.set_exception(RuntimeError(self._answer.decode(errors="replace")))
            return
        if not self._received and self._first in self._answer:
            self._received = True
            self.first_deltas.append(time.perf_counter() - self._asked_at)
            since = since_model(self._answer)
            if since is not None:
                self.after_model.append(since)
        if not is_whole(self._answer):
            return
        self.latencies.append(time.perf_counter() - self._asked_at)
        if self.running:
            self.ask()
        elif not self.stopped.done():
            self.stopped.set_result(None)

    def ask(self) -> None:
        """Send the request."""
        self._answer.clear()
        self._received = False
        self._asked_at = time.perf_counter()
        self._transport.write(self._request)

    def close(self) -> None:
        """Close the connection."""
        self._transport.abort()


S = TypeVar("S", bound="Socket | HttpStream")


async def open_sockets(order: Order, make: Callable[[Order, int], S]) -> list[S]:
    """Open the sockets and their sessions, `at_once` at a time."""
    loop = asyncio.get_running_loop()
    gate = asyncio.Semaphore(order.at_once)

    async def open_socket(number: int) -> S:
        async with gate, asyncio.timeout(TIMEOUT_SECONDS):
            began = time.perf_counter()
            _, socket = await loop.create_connection(
                lambda: make(order, number), "127.0.0.1", order.port
            )
            await socket.opened
            socket.opening = time.perf_counter() - began
            return socket

    return list(await asyncio.gather(*(open_socket(number) for number in range(order.sockets))))


def quantiles(values: list[float]) -> dict[str, float]:
    """Return the median and the 95th percentile in milliseconds."""
    if len(values) < 2:
        return {"p50": 0.0, "p95": 0.0}
    cuts = statistics.quantiles(values, n=20, method="inclusive")
    return {"p50": cuts[9] * 1000, "p95": cuts[18] * 1000}


def say(line: str) -> None:
    """Print a line for the parent process."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def run(order: Order) -> None:
    """Carry out an order."""
    sockets: Sequence[Socket | HttpStream] = (
        await open_sockets(order, HttpStream) if order.http else await open_sockets(order, Socket)
    )
    if not order.text:
        # Idle sockets stay open until stdin is closed.
        say("begin")
        say(json.dumps(quantiles([socket.opening for socket in sockets])))
        await asyncio.to_thread(sys.stdin.read)
        return
    for socket in sockets:
        socket.running = True
        socket.ask()
    await asyncio.sleep(order.warm)
    for socket in sockets:
        socket.latencies.clear()
        socket.first_deltas.clear()
        socket.after_model.clear()
    say("begin")
    began = time.perf_counter()
    await asyncio.sleep(order.seconds)
    elapsed = time.perf_counter() - began
    latencies = [value for socket in sockets for value in socket.latencies]
    first_deltas = [value for socket in sockets for value in socket.first_deltas]
    after_model = [value for socket in sockets for value in socket.after_model]
    say("end")
    for socket in sockets:
        socket.running = False
    async with asyncio.timeout(TIMEOUT_SECONDS):
        await asyncio.gather(*(socket.stopped for socket in sockets))
    result = {
        "turns": len(latencies),
        "seconds": elapsed,
        "latency_ms": quantiles(latencies),
        "first_delta_ms": quantiles(first_deltas),
        "after_model_ms": quantiles(after_model),
        "recorded": sockets[0].recorded,
    }
    for socket in sockets:
        socket.close()
    say(json.dumps(result))


def allow_many_sockets() -> None:
    """Raise the limit of open files to the hard limit."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main() -> None:
    """Read the order and carry it out."""
    allow_many_sockets()
    asyncio.run(run(Order(**json.loads(sys.stdin.readline()))))


if __name__ == "__main__":
    main()
