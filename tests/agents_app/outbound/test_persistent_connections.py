"""Posts that share a connection, and when they make a new one."""

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from agents_app.outbound import persistent_connections
from agents_app.outbound.guard import Posted, Unreachable
from agents_app.outbound.persistent_connections import PersistentConnection
from agents_app.outbound.rules import Policy
from tests.agents_app.web_server import web_server, write_certificate
from tests.client import wait_until
from tests.http_server import KeepAliveServer, accept, answer_with, serving


def hang_up(request: BaseHTTPRequestHandler) -> None:
    """Close the connection without an answer."""
    request.close_connection = True


def cut_off(request: BaseHTTPRequestHandler) -> None:
    """Answer with less of a body than was announced."""
    request.send_response(404)
    request.send_header("Content-Length", "9")
    request.end_headers()
    request.wfile.write(b"half")
    request.close_connection = True


@pytest.fixture
def server() -> Iterator[KeepAliveServer]:
    """Run the server."""
    with serving(KeepAliveServer()) as running:
        yield running


@pytest.fixture
def connection() -> Iterator[PersistentConnection]:
    """Return a connection, and close it."""
    persistent = PersistentConnection(ssl.create_default_context())
    yield persistent
    persistent.close()


def post(connection: PersistentConnection, server: KeepAliveServer, body: bytes) -> Posted:
    """Post to the server, which is allowed."""
    place = server.origin.removeprefix("http://")
    policy = Policy(allowed=frozenset({place}), seconds=60)
    return connection.post(f"{server.origin}/x", policy, body=body, headers={"X-Name": "value"})


def test_posts_share_a_connection(
    server: KeepAliveServer, connection: PersistentConnection
) -> None:
    for body in (b"one", b"two", b"three"):
        assert post(connection, server, body) == Posted(202)
    assert server.connections == [[b"one", b"two", b"three"]]
    connection.close()
    assert server.ended.acquire(timeout=60)
    assert post(connection, server, b"four") == Posted(202)
    assert server.connections[1:] == [[b"four"]]


def test_a_connection_that_the_server_closed_is_made_anew(
    server: KeepAliveServer, connection: PersistentConnection
) -> None:
    server.answer = answer_with(202, b"", ("Connection", "close"))
    for body in (b"one", b"two"):
        assert post(connection, server, body) == Posted(202)
    assert server.connections == [[b"one"], [b"two"]]


def test_a_post_is_sent_again_if_the_connection_ends_before_its_answer(
    server: KeepAliveServer, connection: PersistentConnection
) -> None:
    assert post(connection, server, b"one") == Posted(202)

    def hang_up_once(request: BaseHTTPRequestHandler) -> None:
        server.answer = accept
        hang_up(request)

    server.answer = hang_up_once
    assert post(connection, server, b"two") == Posted(202)
    assert server.connections == [[b"one", b"two"], [b"two"]]
    # On a new connection this is a failure, and on the second one, too.
    server.answer = hang_up
    with pytest.raises(Unreachable):
        post(connection, server, b"three")
    assert server.connections[1:] == [[b"two", b"three"], [b"three"]]
    with pytest.raises(Unreachable):
        post(connection, server, b"four")
    assert server.connections[3:] == [[b"four"]]


@pytest.mark.parametrize("name", ["IDLE_SECONDS", "USE_SECONDS"])
def test_an_idle_or_old_connection_is_not_used(
    server: KeepAliveServer, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(persistent_connections, name, -1.0)
    connection = PersistentConnection(ssl.create_default_context())
    for body in (b"one", b"two"):
        assert post(connection, server, body) == Posted(202)
    connection.close()
    assert server.connections == [[b"one"], [b"two"]]


def test_a_large_answer_or_a_slow_one_ends_the_connection(
    server: KeepAliveServer, connection: PersistentConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answer = answer_with(
        413, bytes(persistent_connections.ANSWER_BYTES + 1), ("Retry-After", "7")
    )
    assert post(connection, server, b"one") == Posted(413, 7)
    released = threading.Event()
    waits: list[bool] = []

    def dawdle(request: BaseHTTPRequestHandler) -> None:
        request.send_response(202)
        request.send_header("Content-Length", "10")
        request.end_headers()
        waits.append(released.wait(30))
        request.close_connection = True

    server.answer = dawdle
    monkeypatch.setattr(persistent_connections, "ANSWER_SECONDS", 0.1)
    assert post(connection, server, b"two") == Posted(202)
    released.set()
    wait_until(lambda: waits == [True])
    server.answer = accept
    assert post(connection, server, b"three") == Posted(202)
    assert server.connections == [[b"one"], [b"two"], [b"three"]]


def test_a_redirect_is_not_followed(
    server: KeepAliveServer, connection: PersistentConnection
) -> None:
    server.answer = answer_with(307, b"", ("Location", "/y"))
    assert post(connection, server, b"one") == Posted(307)
    assert server.connections == [[b"one"]]


def test_each_new_connection_and_each_post_is_checked(server: KeepAliveServer) -> None:
    place, port = "example.org:8443", server.server_address[1]
    lookups: list[str] = []

    def resolve(host: str, _port: int, _seconds: float) -> list[str]:
        lookups.append(host)
        return ["127.0.0.1"]

    connection = PersistentConnection(ssl.create_default_context(), resolve=resolve)
    allowed = Policy(allowed=frozenset({f"example.org:{port}"}), seconds=60)
    url = f"http://example.org:{port}"
    for body in (b"one", b"two"):
        assert connection.post(url, allowed, body=body, headers={}) == Posted(202)
    assert lookups == ["example.org"]
    with pytest.raises(Unreachable) as refused:
        connection.post(url, Policy(seconds=60), body=b"three", headers={})
    assert refused.value.reason == "'http' is not https"
    with pytest.raises(Unreachable) as refused:
        connection.post(f"https://{place}", Policy(seconds=60), body=b"three", headers={})
    assert refused.value.reason == "example.org leads to 127.0.0.1"
    connection.close()
    assert server.connections == [[b"one", b"two"]]


def test_the_certificate_is_checked(tmp_path: Path) -> None:
    certificate = tmp_path / "server.pem"
    write_certificate(certificate, "localhost")
    with web_server(certificate) as web:
        url = web.page("/").replace("http://127.0.0.1", "https://localhost")
        policy = Policy(allowed=frozenset({f"localhost:{web.port}"}), seconds=60)
        refused = PersistentConnection(ssl.create_default_context())
        with pytest.raises(Unreachable, match="cannot be reached"):
            refused.post(url, policy, body=b"{}", headers={})
        assert web.asked == []
        trusted = PersistentConnection(ssl.create_default_context(cafile=str(certificate)))
        assert trusted.post(url, policy, body=b"{}", headers={}) == Posted(200)
        trusted.close()
    wait_until(lambda: len(web.asked) == 1)


def test_a_refusal_has_its_body_if_that_is_whole_and_small(
    server: KeepAliveServer, connection: PersistentConnection
) -> None:
    policy = Policy(
        allowed=frozenset({server.origin.removeprefix("http://")}), seconds=60, max_bytes=5
    )
    cases = [
        (answer_with(409, b"three"), Posted(409, data=b"three")),
        (answer_with(409, b"eleven"), Posted(409)),
        (answer_with(202, b"three"), Posted(202)),
        (cut_off, Posted(404)),
    ]
    for answer, expected in cases:
        server.answer = answer
        posted = connection.post(f"{server.origin}/x", policy, body=b"", headers={})
        assert posted == expected
