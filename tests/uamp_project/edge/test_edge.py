"""The edge on both servers, as they run: `manage.py serve` (Daphne) and uvicorn."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import struct
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import httpx
import psutil
import pytest

from tests import services
from tests.client import UampClient, new_event
from tests.journeys.product import ROOT, Product
from tests.uamp_project.edge.raw_clients import (
    KIB,
    MIB,
    answer_of,
    close_code,
    connects,
    is_open,
    masked,
    piece,
    reading_nothing,
    until_bob_connects,
    upgraded,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BODY_BYTES = MIB
UPLOAD_BYTES = 2 * MIB
SERVERS = ("serve", "uvicorn")
SETTINGS = {
    "UAMP_BODY_BYTES": str(BODY_BYTES),
    "UAMP_UPLOAD_BYTES": str(UPLOAD_BYTES),
    "UAMP_BODY_BYTES_PER_ADDRESS": str(5 * MIB),
    "UAMP_STALL_SECONDS": "2",
    "UAMP_OWED_BYTES": str(MIB),
    "UAMP_CONNECTIONS_PER_USER": "1",
    "UAMP_RESPONSES_PER_MINUTE": "100000",
    "UAMP_EVENTS_PER_MINUTE": "1000000",
    "UAMP_EVENTS_BURST": "1000000",
    "LOG_LEVEL": "WARNING",
}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Product:
    """Make a database with a demo, to be copied."""
    product = Product(tmp_path_factory.mktemp("prepared"), 0)
    product.prepare()
    return product


@pytest.fixture(scope="module", params=SERVERS)
def product(
    request: pytest.FixtureRequest, prepared: Product, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Product]:
    """Run one of the servers."""
    data_dir: Path = tmp_path_factory.mktemp(request.param) / "data"
    shutil.copytree(prepared.data_dir, data_dir)
    running = Product(
        data_dir, services.free_port(), SETTINGS, prepared.people, server=request.param
    )
    running.start()
    yield running
    running.stop()


def check_refusal(answer: httpx.Response, status: int, code: str, *, with_event: bool) -> None:
    """Check that an answer is a problem of this kind."""
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    problem = answer.json()
    assert (problem["status"], problem["code"]) == (status, code)
    assert ("event" in problem) is with_event
    if with_event:
        assert problem["event"]["type"] == "session.error"
        assert problem["event"]["error"]["code"] == code


# --- Static files ---


def test_a_server_copies_its_bundles_and_serves_those_of_another_release(product: Product) -> None:
    folder = product.data_dir / "bundles"
    manifest = json.loads((ROOT / "static" / "dist" / "manifest.json").read_text())
    assert {file.name for file in folder.iterdir()} == set(manifest["files"])
    (folder / "later-AAAAAAA1.js").write_text("export {}")
    with product.api("alice") as web:
        for prefix in ("/static/", "/static/000000000000/"):
            answer = web.get(f"{prefix}dist/later-AAAAAAA1.js")
            assert (answer.status_code, answer.text) == (200, "export {}")
            assert answer.headers["Content-Type"].startswith("text/javascript")
            assert "immutable" in answer.headers["Cache-Control"]
            assert web.get(f"{prefix}dist/later-AAAAAAA2.js").status_code == 404


# --- Bodies ---


@pytest.mark.sampled
@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize(
    ("path", "limit", "code"),
    [
        ("/events", BODY_BYTES, "frame_too_large"),
        ("/agents/echo/uamp/stream", BODY_BYTES, "frame_too_large"),
        ("/api/v1/chats", BODY_BYTES, "content_too_large"),
        ("/admin/login/", BODY_BYTES, "content_too_large"),
        ("/no/such/path", BODY_BYTES, "content_too_large"),
        ("/api/v1/contents", UPLOAD_BYTES + 64 * KIB, "content_too_large"),
    ],
)
def test_a_body_above_the_limit_of_its_path_is_refused_in_its_words(
    product: Product, path: str, limit: int, code: str, *, is_streamed: bool
) -> None:
    def pieces(size: int) -> Iterator[bytes]:
        while size:
            yield b" " * min(size, 64 * KIB)
            size -= min(size, 64 * KIB)

    with product.api("alice") as web:
        for size in (limit, limit + 1, limit + 4 * MIB):
            body: Any = pieces(size) if is_streamed else b" " * size
            answer = web.post(path, content=body, headers={"Content-Type": "application/json"})
            if size == limit:
                assert answer.status_code != httpx.codes.REQUEST_ENTITY_TOO_LARGE
            else:
                check_refusal(answer, 413, code, with_event=code == "frame_too_large")


def test_a_body_without_end_is_cut(product: Product) -> None:
    head = b"POST /login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    piece = b"10000\r\n" + bytes(64 * KIB) + b"\r\n"
    sent_bytes = 0
    with socket.create_connection(("127.0.0.1", product.port), timeout=20) as raw:
        raw.sendall(head)
        with suppress(ConnectionError):
            while sent_bytes < 1024 * MIB:
                raw.sendall(piece)
                sent_bytes += 64 * KIB

    assert sent_bytes < 512 * MIB


# Daphne hands a body over when it is whole, and has it at once.
@pytest.mark.parametrize("product", ["uvicorn"], indirect=True)
def test_an_address_holds_few_bodies_at_once(product: Product) -> None:
    head = f"POST /api/v1/contents HTTP/1.1\r\nHost: a\r\nContent-Length: {UPLOAD_BYTES}\r\n\r\n"
    sockets = [socket.create_connection(("127.0.0.1", product.port), timeout=20) for _ in range(3)]
    for raw in sockets:
        raw.sendall(head.encode())
        raw.sendall(bytes(UPLOAD_BYTES - MIB // 8))
    # The last one is refused; those that then send nothing more do not keep their places.
    answers = sorted(answer_of(raw) for raw in sockets)
    assert answers[:2] == [b"", b""]
    assert answers[2].startswith(b"HTTP/1.1 429")
    with product.api("alice") as web:
        files = {"file": ("a.bin", bytes(UPLOAD_BYTES - 1), "application/octet-stream")}
        assert web.post("/api/v1/contents", files=files).status_code == httpx.codes.CREATED


def test_a_batch_at_the_limit_is_taken(product: Product) -> None:
    event = new_event("ping")
    body = f"[{httpx.Request('POST', 'http://a', json=event).content.decode()}]".encode()
    with product.api("alice") as web:
        answer = web.post("/uamp", content=body.ljust(BODY_BYTES))
    assert answer.status_code == httpx.codes.OK


# --- Clients that take nothing ---

LONG = "x" * 100_000
SESSION = {"type": "realtime", "instructions": LONG}
# What a client sends on the socket of UAMP, and of another protocol: once, and then on and on.
UNREAD: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "/uamp": (
        [new_event("session.create", session={}, agent="echo")],
        [new_event("input.text", text=LONG), new_event("response.create")],
    ),
    "/agents/echo/realtime": ([], [new_event("session.update", session=SESSION)]),
}


@pytest.mark.parametrize("path", UNREAD)
def test_a_socket_that_is_not_read_is_let_go(product: Product, path: str) -> None:
    assert product.process is not None
    memory = psutil.Process(product.process.pid).memory_info
    until_bob_connects(product)
    before = memory().rss
    upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13"
    key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="
    frame_count = 0
    once, again = UNREAD[path]
    with reading_nothing(product, f"GET {path} HTTP/1.1\r\n{upgrade}\r\n{key}") as raw:
        raw.sendall(b"".join(map(masked, once)))
        with suppress(ConnectionError):
            while frame_count < 1000:
                raw.sendall(b"".join(map(masked, again)))
                frame_count += 1
        grown = memory().rss - before
        until_bob_connects(product)

    # It was cut while it sent: before, it was not read any more.
    assert frame_count < 1000
    assert grown < 60 * MIB


def test_a_stream_that_is_not_read_is_let_go(product: Product) -> None:
    until_bob_connects(product)
    with product.api("bob") as web:
        created = web.post("/events", json=new_event("session.create", session={}, agent="echo"))
        session = {"X-Session-ID": created.headers["X-Session-ID"]}
        head = f"GET /events/stream HTTP/1.1\r\nX-Session-ID: {session['X-Session-ID']}"
        with reading_nothing(product, head):
            assert not connects(product)
            deadline = time.monotonic() + 30
            while not connects(product):
                assert time.monotonic() < deadline
                web.post(
                    "/events", json=new_event("input.text", text="x" * 200_000), headers=session
                )
                web.post("/events", json=new_event("response.create"), headers=session)


# --- Clients that do not finish ---

UNFINISHED = {
    "headers": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
    "second headers": b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nGET /healthz HTTP/1.1\r\n",
    "body": b"POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n",
    "body of an answer": b"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n",
}


@pytest.mark.parametrize("part", UNFINISHED)
def test_a_request_that_is_not_finished_is_let_go(product: Product, part: str) -> None:
    with socket.create_connection(("127.0.0.1", product.port), timeout=20) as raw:
        raw.sendall(UNFINISHED[part])
        deadline = time.monotonic() + 20
        with suppress(ConnectionError):
            while is_open(raw):
                assert time.monotonic() < deadline, f"the {part} may take for ever"
                raw.sendall(b"x")


# Twisted ends what says nothing after a minute.
@pytest.mark.parametrize("product", ["uvicorn"], indirect=True)
@pytest.mark.parametrize("first_bytes", [b"", b"\r\n"])
def test_a_connection_without_a_request_is_let_go(product: Product, first_bytes: bytes) -> None:
    with socket.create_connection(("127.0.0.1", product.port), timeout=20) as raw:
        raw.sendall(first_bytes)
        while raw.recv(4096):
            pass


@pytest.mark.parametrize("opcode", [1, 2])
def test_a_message_that_is_not_finished_is_let_go(product: Product, opcode: int) -> None:
    with upgraded(product) as raw:
        raw.sendall(piece(b"x" * 2000, opcode))
        deadline = time.monotonic() + 20
        with suppress(ConnectionError):
            while is_open(raw):
                assert time.monotonic() < deadline, "the message may take for ever"
                raw.sendall(piece(b"x"))


def test_a_message_that_comes_slowly_is_taken(product: Product) -> None:
    with upgraded(product, "alice") as raw:
        text = json.dumps(new_event("ping")).encode().ljust(100 * KIB)
        raw.sendall(piece(text[: 20 * KIB], 1))
        for start in range(20 * KIB, 100 * KIB, 20 * KIB):
            time.sleep(0.8)
            raw.sendall(piece(text[start : start + 20 * KIB]))
        raw.sendall(piece(b"", is_last=True))
        assert b'"pong"' in raw.recv(4096)


def test_an_address_holds_few_unfinished_messages(product: Product) -> None:
    sockets = [upgraded(product) for _ in range(3)]
    for raw in sockets:
        raw.sendall(piece(b"x" * 2 * MIB, 1))
        time.sleep(0.2)
    assert [is_open(raw) for raw in sockets] == [True, True, False]
    # Others of the address go on, with messages of an ordinary size.
    with upgraded(product) as other:
        other.sendall(piece(json.dumps(new_event("ping")).encode(), 1, is_last=True))
        assert b'"pong"' in other.recv(4096)
    for raw in sockets:
        raw.close()


# --- Clients that send many frames ---

PING, PONG = 9, 10
# The text of an event begins, and goes on with parts of nothing.
FLOODS = {
    "pings": piece(b"x" * 125, PING, is_last=True) * 500,
    "pongs": piece(b"x" * 125, PONG, is_last=True) * 500,
    "empty parts": piece(b"{", 1) + piece(b"") * 5000,
    "small parts": piece(b"{", 1) + piece(b" " * 100) * 5000,
}


@pytest.mark.parametrize("flood", FLOODS)
def test_a_client_that_sends_too_many_frames_is_let_go(product: Product, flood: str) -> None:
    with upgraded(product) as raw:
        raw.sendall(FLOODS[flood])
        assert close_code(raw) == 1008
    with UampClient(f"ws://127.0.0.1:{product.port}/uamp") as other:
        other.send("ping")
        other.expect("pong")


def test_messages_in_parts_and_some_pings_are_taken(product: Product) -> None:
    with upgraded(product, "alice") as raw, raw.makefile("rb") as reader:
        for _ in range(3):
            text = json.dumps(new_event("ping")).encode().ljust(250 * KIB)
            raw.sendall(piece(text[:KIB], 1))
            for start in range(KIB, 250 * KIB, KIB):
                raw.sendall(piece(text[start : start + KIB]))
            raw.sendall(piece(b"", PING, is_last=True) * 50)
            assert reader.read(100) == b"\x8a\x00" * 50
            raw.sendall(piece(b"", is_last=True))
            head = reader.read(2)
            size = head[1] if head[1] < 126 else struct.unpack(">H", reader.read(2))[0]
            assert b'"pong"' in reader.read(size)


# --- HEAD ---


def test_head_has_no_body_and_the_connection_stays_usable(product: Product) -> None:
    data = bytes(1500 * KIB)
    with product.api("alice") as web:
        files = {"file": ("a.bin", data, "application/octet-stream")}
        stored = web.post("/api/v1/contents", files=files).json()
        assert "signed_url" in stored, stored
    connection = http.client.HTTPConnection("127.0.0.1", product.port, timeout=20)
    for path in (stored["signed_url"], "/static/chat/styles/base.css", "/api/schema", "/login"):
        connection.request("GET", path)
        response = connection.getresponse()
        size = len(response.read())
        connection.request("HEAD", path)
        head = connection.getresponse()
        assert (head.status, head.read()) == (response.status, b""), path
        assert int(head.headers["Content-Length"]) == size, path
        connection.request("GET", "/healthz")
        assert connection.getresponse().read() == b'{"status": "alive"}', path
    connection.close()
