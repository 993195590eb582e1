"""Clients over raw sockets that send pieces of requests and frames, and may take nothing."""

from __future__ import annotations

import json
import socket
import struct
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from websockets.exceptions import InvalidStatus

from tests.client import UampClient

if TYPE_CHECKING:
    from tests.journeys.product import Product

KIB = 1024
MIB = 1024 * KIB


def answer_of(raw: socket.socket) -> bytes:
    """Return the server's reply before it closes or cuts a connection."""
    with raw, suppress(ConnectionError):
        return raw.recv(4096)
    return b""


def masked(event: dict[str, Any]) -> bytes:
    """Return an event as a frame of a WebSocket client, long enough for 8 bytes of length."""
    text = json.dumps(event).encode().ljust(64 * KIB)
    return b"\x81\xff" + struct.pack(">Q", len(text)) + bytes(4) + text


def reading_nothing(product: Product, head: str) -> socket.socket:
    """Connect as bob with a request of these first lines, for a client that only sends."""
    key = product.people["bob"]["api_key"]
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.settimeout(20)
        raw.connect(("127.0.0.1", product.port))
        raw.sendall(f"{head}\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
        if raw.recv(12)[9:] in {b"101", b"200"}:
            return raw
        raw.close()  # bob's last connection is still counted
    raise AssertionError("bob cannot connect")


def connects(product: Product) -> bool:
    """Return whether bob, who may have one connection, can open one."""
    try:
        with UampClient(
            f"ws://127.0.0.1:{product.port}/uamp",
            headers={"Authorization": f"Bearer {product.people['bob']['api_key']}"},
        ) as client:
            client.create_session(agent="echo")
    except InvalidStatus:
        return False
    return True


def until_bob_connects(product: Product) -> None:
    """Wait until bob's connection that takes nothing is gone; what is gone left no memory."""
    deadline = time.monotonic() + 30
    while not connects(product):
        assert time.monotonic() < deadline, "the client that takes nothing is still there"
        time.sleep(0.2)


def upgraded(product: Product, username: str = "") -> socket.socket:
    """Open a WebSocket for a client that only does what the test says; '' is a visitor."""
    raw = socket.create_connection(("127.0.0.1", product.port), timeout=20)
    key = f"Authorization: Bearer {product.people[username]['api_key']}\r\n" if username else ""
    raw.sendall(
        f"GET /uamp HTTP/1.1\r\nHost: localhost\r\n{key}Upgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
    )
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += raw.recv(1)
    assert answer.startswith(b"HTTP/1.1 101")
    return raw


def piece(data: bytes, opcode: int = 0, *, is_last: bool = False) -> bytes:
    """Return a frame of a client: the beginning of a text (1), or what goes on (0)."""
    size = len(data)
    if size < 126:
        length = bytes([0x80 | size])
    elif size < 2**16:
        length = b"\xfe" + struct.pack(">H", size)
    else:
        length = b"\xff" + struct.pack(">Q", size)
    return bytes([opcode | (0x80 if is_last else 0)]) + length + bytes(4) + data


def is_open(raw: socket.socket) -> bool:
    """Return whether nothing came of a connection, neither data nor its end, for a moment."""
    raw.settimeout(0.3)
    try:
        return bool(raw.recv(4096))
    except TimeoutError:
        return True
    except ConnectionError:
        return False


def close_code(raw: socket.socket) -> int:
    """Read until a close frame; return its code. Other frames are short ones."""
    with raw.makefile("rb") as come:
        while head := come.read(2):
            payload = come.read(head[1])
            if head[0] & 0x0F == 8:
                return int(struct.unpack(">H", payload[:2])[0])
    raise AssertionError("the connection ended without a close frame")
