"""The servers with backpressure and deadlines, each in a process of its own, over raw sockets."""

import base64
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, Queue

import psutil
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.programs import Program
from tests.threads import join_threads

MIB = 1024 * 1024


class Served:
    """A running server of `daphne_application` and the lines that it prints."""

    def __init__(self, stall: float, drain: float, server: str) -> None:
        module = f"tests.uamp_project.servers.{server}_application"
        self.process = Program(
            *(sys.executable, "-m", module, str(stall), str(drain)), stdout=subprocess.PIPE
        )
        self._lines: Queue[str] = Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self.port = int(self.line("port").split()[1])
        except Empty:
            self.end()
            raise

    def line(self, start: str) -> str:
        """Wait for the next line that begins so; those before it are dropped."""
        while True:
            line = self._lines.get(timeout=90)
            if line.startswith(start):
                return line

    def last(self, start: str) -> str:
        """Return the last line that begins so, when no new line came for a second."""
        latest = ""
        while True:
            try:
                line = self._lines.get(timeout=1)
            except Empty:
                return latest
            if line.startswith(start):
                latest = line

    def end(self) -> None:
        """Kill it, if it still runs."""
        self.process.end(signal.SIGKILL)
        join_threads([self._reader])
        assert self.process.stdout
        self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._lines.put(line.strip())


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    running: list[Served] = []

    def start(*, stall: float = 30, drain: float = 0, server: str = "daphne") -> Served:
        running.append(Served(stall, drain, server))
        return running[-1]

    yield start
    for served in running:
        served.end()


def open_raw(port: int, path: str) -> socket.socket:
    """Shake hands for a socket that only does what the test says; a small receive buffer."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    raw.settimeout(20)
    raw.connect(("127.0.0.1", port))
    key = base64.b64encode(os.urandom(16)).decode()
    raw.sendall(
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    return raw


def test_frames_come_back_as_they_went_also_empty_ones(serve: Callable[..., Served]) -> None:
    with connect(f"ws://127.0.0.1:{serve().port}/echo") as ws:
        for message in ("text", "", b"bytes", b"", "ä" * 1000):
            ws.send(message)
            assert ws.recv(timeout=60) == message
        # No permessage-deflate: it costs memory per socket, and bombs need it.
        assert ws.response is not None
        assert "Sec-WebSocket-Extensions" not in ws.response.headers


def test_a_close_of_the_application_keeps_its_code_and_reason(
    serve: Callable[..., Served],
) -> None:
    with connect(f"ws://127.0.0.1:{serve().port}/echo") as ws:
        ws.send("close")
        with pytest.raises(ConnectionClosed) as closed:
            ws.recv(timeout=60)

    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1008, "asked for")


def test_a_frame_at_the_limit_passes_and_one_byte_more_closes_with_1009(
    serve: Callable[..., Served],
) -> None:
    with connect(f"ws://127.0.0.1:{serve().port}/echo", max_size=None) as ws:
        ws.send("x" * 8 * MIB)
        assert len(ws.recv(timeout=60)) == 8 * MIB
        ws.send("x" * (8 * MIB + 1))
        with pytest.raises(ConnectionClosed) as closed:
            ws.recv(timeout=60)

    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


def test_a_reader_that_stops_holds_up_its_sender_not_the_memory(
    serve: Callable[..., Served],
) -> None:
    served = serve()
    before = psutil.Process(served.process.pid).memory_info().rss
    with open_raw(served.port, "/flood") as raw:
        taken = int(served.last("taken").split()[1])
        grown = psutil.Process(served.process.pid).memory_info().rss - before

        # What the kernel buffers on both sides is all that goes; Daphne alone takes everything.
        assert taken < 200
        assert grown < 20 * MIB
        # And it goes on when the reader does.
        for _ in range(400):
            raw.recv(65536)
        assert int(served.last("taken").split()[1]) > taken


@pytest.mark.parametrize("server", ["daphne", "uvicorn"])
def test_of_the_pings_of_a_reader_that_stops_the_latest_is_answered_when_it_reads(
    serve: Callable[..., Served], server: str
) -> None:
    served = serve(server=server)
    with open_raw(served.port, "/flood") as raw, raw.makefile("rb") as come:
        while come.readline() != b"\r\n":
            pass
        served.last("taken")
        for number in range(300):
            payload = str(number).encode()
            raw.sendall(bytes([0x89, 0x80 | len(payload), 0, 0, 0, 0]) + payload)
        raw.sendall(bytes([0x81, 0x81, 0, 0, 0, 0]) + b"x")
        served.line("received")
        pongs: list[bytes] = []
        frames = 0
        while not pongs or frames < 300:
            head = come.read(2)
            size = head[1] if head[1] < 126 else struct.unpack(">Q", come.read(8))[0]
            payload = come.read(size)
            frames += 1
            if head[0] == 0x8A:
                pongs.append(payload)
        assert pongs == [b"299"]


def test_a_reader_that_stays_away_is_closed(serve: Callable[..., Served]) -> None:
    served = serve(stall=1)
    with open_raw(served.port, "/flood"):
        assert served.line("closed") == "closed 1006"


def test_a_response_waits_for_its_reader_and_ends_without_one(serve: Callable[..., Served]) -> None:
    served = serve(stall=3)
    with socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        raw.connect(("127.0.0.1", served.port))
        raw.sendall(b"GET /stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")

        assert int(served.last("taken").split()[1]) < 200
        assert served.line("closed") == "closed http.disconnect"


@pytest.mark.parametrize("server", ["daphne", "uvicorn"])
def test_a_client_that_floods_a_slow_application_is_held_up(
    serve: Callable[..., Served], server: str
) -> None:
    served = serve(server=server)
    before = psutil.Process(served.process.pid).memory_info().rss
    payload = b"x" * 65536
    frame = b"\x82\xff" + struct.pack(">Q", len(payload)) + bytes(4) + payload
    with open_raw(served.port, "/slow") as raw:
        raw.recv(65536)
        raw.settimeout(1)
        sent = 0
        with suppress(TimeoutError):
            while sent < 2000:
                raw.sendall(frame)
                sent += 1
        grown = psutil.Process(served.process.pid).memory_info().rss - before

    assert sent < 400
    assert grown < 20 * MIB


@pytest.mark.parametrize("size", [MIB, MIB + 1])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_above_the_limit_is_refused(
    serve: Callable[..., Served], size: int, *, chunked: bool
) -> None:
    framing = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {size}"
    body = f"{size:x}\r\n".encode() + bytes(size) + b"\r\n0\r\n\r\n" if chunked else bytes(size)
    with socket.create_connection(("127.0.0.1", serve().port), timeout=20) as raw:
        raw.sendall(f"POST /stream HTTP/1.1\r\nHost: 127.0.0.1\r\n{framing}\r\n\r\n".encode())
        with suppress(ConnectionError):
            raw.sendall(body)
        status = raw.recv(65536).split(b"\r\n")[0]

    assert status == (b"HTTP/1.1 200 OK" if size == MIB else b"HTTP/1.1 413 Content Too Large")


@pytest.mark.parametrize("server", ["daphne", "uvicorn"])
def test_what_is_no_request_is_refused_with_a_problem(
    serve: Callable[..., Served], server: str
) -> None:
    served = serve(server=server)
    host = b"Host: 127.0.0.1\r\n"
    for sent in (
        "GET /agents/é HTTP/1.1\r\n".encode() + host + b"\r\n",
        b"GET /a b HTTP/1.1\r\n" + host + b"\r\n",
        b"\x16\x03\x01\x02\r\n\r\n",
        # The second request would be the body of the first for a proxy that believes its length.
        b"POST / HTTP/1.1\r\nContent-Length: 50\r\nTransfer-Encoding: chunked\r\n"
        + host
        + b"\r\n0\r\n\r\nGET /stream?200 HTTP/1.1\r\n"
        + host
        + b"\r\n",
        # A proxy may read the rest of a line that ends with LF alone as a part of its value.
        b"GET /stream?200 HTTP/1.1\r\nX-Odd: a\nX-Other: b\r\n" + host + b"\r\n",
    ):
        assert refused_with(served, sent) == ("400 Bad Request", "malformed_request")


def test_lines_that_end_with_lf_alone_are_no_headers(serve: Callable[..., Served]) -> None:
    served = serve(server="uvicorn")  # daphne waits for the end of the line
    for sent in (
        b"GET /stream?200 HTTP/1.1\nHost: 127.0.0.1\n\n",
        b"GET /stream?200 HTTP/1.1\r\nHost: 127.0.0.1\r\n\n",
    ):
        assert refused_with(served, sent) == ("400 Bad Request", "malformed_request")


@pytest.mark.parametrize("server", ["daphne", "uvicorn"])
def test_headers_that_are_too_large_are_refused_with_a_problem(
    serve: Callable[..., Served], server: str
) -> None:
    served = serve(server=server)
    start = b"GET /stream?200 HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    for sent in (
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n",
        start + b"X-Long: " + b"a" * 100_000,
        start + b"".join(b"X-%d: %s\r\n" % (n, b"a" * 1000) for n in range(100)),
    ):
        refused = refused_with(served, sent)
        assert refused == ("431 Request Header Fields Too Large", "headers_too_large")


ANSWER_BYTES = 10_000
"""A refusal is short."""
TWO_WAYS = (
    "",
    "Host: a\r\nHost: b\r\n",
    "Host: a\r\nHost: a\r\n",
    "Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
    "Host: a\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n",
    "Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    "Host: a\r\nTransfer-Encoding: chunked, identity\r\n",
    "Host: a\r\nTransfer-Encoding: identity\r\n",
    "Host: a\r\nTransfer-Encoding: xchunked\r\n",
    "Host: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    "Host: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n",
    "Host: a\r\nContent-Length: +5\r\n",
    "Host : a\r\n",
)
"""Headers that a proxy could read in another way than the server behind it."""


@pytest.mark.parametrize("server", ["daphne", "uvicorn"])
def test_the_body_of_a_form_is_left_to_the_application(
    serve: Callable[..., Served], server: str
) -> None:
    # A server that parsed it, on its only thread, would find no boundary and refuse it.
    head = b"Host: 127.0.0.1\r\nContent-Type: multipart/form-data\r\nContent-Length: 2\r\n\r\n"
    with socket.create_connection(("127.0.0.1", serve(server=server).port), timeout=20) as raw:
        raw.sendall(b"POST /stream?200 HTTP/1.1\r\n" + head + b"--")
        assert raw.recv(4096).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("server", ["daphne", "uvicorn"])
def test_headers_that_can_be_read_in_two_ways_are_refused(
    serve: Callable[..., Served], server: str
) -> None:
    served = serve(server=server)
    for headers in TWO_WAYS:
        begin = f"POST /stream?200 HTTP/1.1\r\n{headers}\r\n0\r\n\r\n"
        with socket.create_connection(("127.0.0.1", served.port), timeout=20) as raw:
            raw.sendall(f"{begin}GET /stream?200 HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            answer = b""
            while len(answer) < ANSWER_BYTES and (piece := raw.recv(65536)):
                answer += piece
        assert answer.count(b"HTTP/1.1 ") == 1, headers
        assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 501 ")), headers


def refused_with(served: Served, sent: bytes) -> tuple[str, str]:
    """Send what is refused; return the status and the code of the one answer."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as raw:
        raw.sendall(sent)
        answer = b"".join(iter(lambda: raw.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert f"content-length: {len(body)}\r\n".encode() in head.lower() + b"\r\n"
    status = head.split(b"\r\n")[0].decode()
    return status.removeprefix("HTTP/1.1 "), json.loads(body)["code"]


@pytest.mark.parametrize(
    ("status", "line"),
    [
        (404, b"404 Not Found"),
        (422, b"422 Unprocessable"),
        (429, b"429 Too Many Requests"),
        (451, b"451 Unavailable For Legal Reasons"),
        (599, b"599 "),
    ],
)
def test_every_status_has_its_reason(
    serve: Callable[..., Served], status: int, line: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", serve().port), timeout=20) as raw:
        raw.sendall(f"GET /stream?{status} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        assert raw.recv(4096).startswith(b"HTTP/1.1 " + line)


def test_sigterm_drains_then_closes_with_1012(serve: Callable[..., Served]) -> None:
    served = serve(drain=0.5)
    with connect(f"ws://127.0.0.1:{served.port}/echo") as ws:
        ws.send("before")
        assert ws.recv(timeout=60) == "before"
        served.process.send_signal(signal.SIGTERM)
        served.line("draining")
        # While it drains, open sockets work and new ones are refused.
        ws.send("meanwhile")
        assert ws.recv(timeout=60) == "meanwhile"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", served.port), timeout=5)
        with pytest.raises(ConnectionClosed) as closed:
            ws.recv(timeout=60)

    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1012
    assert [served.line(word) for word in ("drained", "closed 1012", "finished", "ended")]
    assert served.process.wait(timeout=120) == 0


def test_a_second_signal_ends_the_draining(serve: Callable[..., Served]) -> None:
    served = serve(drain=600)
    served.process.send_signal(signal.SIGINT)
    served.line("draining")
    # At once it is taken for the same wish; after a second it is impatience.
    served.process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        served.process.wait(timeout=1.5)
    served.process.send_signal(signal.SIGINT)

    assert served.process.wait(timeout=120) == 0


def test_an_application_that_goes_on_when_it_is_cancelled_is_left_behind(
    serve: Callable[..., Served],
) -> None:
    served = serve()
    with connect(f"ws://127.0.0.1:{served.port}/stubborn"):
        served.process.send_signal(signal.SIGTERM)
        assert [served.line(word) for word in ("cancelled", "finished", "ended")]
    assert served.process.wait(timeout=120) == 0


def test_a_signal_that_comes_twice_is_one_wish(serve: Callable[..., Served]) -> None:
    served = serve(drain=1)
    with connect(f"ws://127.0.0.1:{served.port}/echo") as ws:
        ws.send("before")
        assert ws.recv(timeout=60) == "before"
        # To the process group of `make run` it comes twice: make passes it on to its child.
        served.process.send_signal(signal.SIGTERM)
        served.line("draining")
        served.process.send_signal(signal.SIGTERM)
        with pytest.raises(ConnectionClosed) as closed:
            ws.recv(timeout=60)

    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1012
    # Drained is what it says when it was not cut short.
    assert [served.line(word) for word in ("drained", "ended")]


def test_a_port_that_is_taken_is_said(serve: Callable[..., Served]) -> None:
    taken = serve().port
    program = (
        "from uamp_project.servers.daphne_server import BackpressureServer as S\n"
        f"s = S(None, host='127.0.0.1', port={taken}, drain=None,"
        " finish=None, ready=None, body_bytes_max=1)\n"
        "s.run()\nprint(s.failure)"
    )
    done = subprocess.run(  # noqa: S603 our own interpreter
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )
    assert "Address already in use" in done.stdout
