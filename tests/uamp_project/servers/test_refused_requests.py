"""Requests that the servers refuse themselves, over raw sockets."""

import json
import socket
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.uamp_project.servers.served import MIB, Served


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


@pytest.mark.sampled(1)
@pytest.mark.parametrize("server", ["daphne", "uvicorn"])
def test_a_malformed_request_is_refused_with_a_problem(
    serve: Callable[..., Served], server: str
) -> None:
    served = serve(server=server)
    host = b"Host: 127.0.0.1\r\n"
    for request in (
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
        assert refused_with(served, request) == ("400 Bad Request", "malformed_request")


def test_headers_whose_lines_end_with_lf_alone_are_refused(serve: Callable[..., Served]) -> None:
    served = serve(server="uvicorn")  # daphne waits for the end of the line
    for request in (
        b"GET /stream?200 HTTP/1.1\nHost: 127.0.0.1\n\n",
        b"GET /stream?200 HTTP/1.1\r\nHost: 127.0.0.1\r\n\n",
    ):
        assert refused_with(served, request) == ("400 Bad Request", "malformed_request")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("server", ["daphne", "uvicorn"])
def test_headers_that_are_too_large_are_refused_with_a_problem(
    serve: Callable[..., Served], server: str
) -> None:
    served = serve(server=server)
    start = b"GET /stream?200 HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    for request in (
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n",
        start + b"X-Long: " + b"a" * 100_000,
        start + b"".join(b"X-%d: %s\r\n" % (n, b"a" * 1000) for n in range(100)),
    ):
        refused = refused_with(served, request)
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


@pytest.mark.sampled(1)
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


def refused_with(served: Served, request: bytes) -> tuple[str, str]:
    """Send what is refused; return the status and the code of the one answer."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as raw:
        raw.sendall(request)
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
