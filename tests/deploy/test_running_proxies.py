"""nginx and Caddy in front of the server: sockets, event streams and calls of gRPC pass through."""

from __future__ import annotations

import queue
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import grpc
import httpx
import pytest

from tests.client import UampClient, new_event, open_stream
from tests.deploy.proxies import running_caddy, running_nginx
from tests.http_server import LocalServer, QuietHandler, serving
from tests.live_server import shared_chat
from tests.threads import thread_pool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import ServerAddress
    from tests.live_server import Person

SECONDS: Final = 60
RECORD_BYTES: Final = 1024 * 1024
# More than both files allow for the body of another request.
RECORDS: Final = 40
PROXIES: Final = {"nginx": running_nginx, "caddy": running_caddy}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", PROXIES)
def test_a_socket_and_an_event_stream_pass_through(
    name: str, demo: ServerAddress, alice: Person, bob: Person, tmp_path: Any
) -> None:
    chat = shared_chat(alice, bob)
    place = f"{demo.host}:{demo.port}"
    with PROXIES[name](tmp_path, web=[place]) as proxy:
        trust = proxy.trust
        with (
            UampClient(f"wss://{proxy.place}/uamp", headers=alice.headers, tls=trust) as socket,
            httpx.Client(
                base_url=f"https://{proxy.place}", verify=trust, trust_env=False, timeout=SECONDS
            ) as web,
        ):
            socket.create_session(chat=chat.pk)
            create = new_event("session.create", session={}, uamp_version="1.0", chat=chat.pk)
            answer = web.post("/events", json=create, headers=bob.headers)
            headers = {**bob.headers, "X-Session-ID": answer.headers["X-Session-ID"]}
            with open_stream(web, "GET", "/events/stream", headers=headers) as stream:
                # Each message arrives before the next is sent.
                for text in ("first", "second"):
                    socket.ask(text)
                    created = stream.until("message.created")[-1].data
                    assert created["message"]["content"] == text
                    assert socket.until("message.created")[-1]["message"]["content"] == text


@pytest.mark.any_database
@pytest.mark.parametrize("name", PROXIES)
def test_a_call_of_grpc_lasts_beyond_the_limit_of_bodies(name: str, tmp_path: Any) -> None:
    with echoing_grpc() as (place, addresses), PROXIES[name](tmp_path, grpc=place) as proxy:
        credentials = grpc.ssl_channel_credentials(proxy.authority.read_bytes())
        requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        with grpc.secure_channel(proxy.place, credentials) as channel:
            call: Any = channel.stream_stream("/uamp.v1.Agent/Stream")
            answers = call(
                iter(requests.get, None),
                metadata=[("x-forwarded-for", "192.0.2.1")],
                timeout=SECONDS,
            )
            for _ in range(RECORDS):
                # The next record is sent once this one came back.
                requests.put(bytes(RECORD_BYTES))
                assert len(next(answers)) == RECORD_BYTES
            requests.put(None)
            assert list(answers) == []
    assert addresses in (["127.0.0.1"], ["::1"])


@contextmanager
def echoing_grpc() -> Iterator[tuple[str, list[str]]]:
    """Run a gRPC server that returns each record; yield its place and the addresses of callers."""
    addresses: list[str] = []

    def echo(records: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        metadata = dict(context.invocation_metadata())
        addresses.append(str(metadata["x-forwarded-for"]))
        yield from records

    handlers: dict[str, Any] = {"Stream": grpc.stream_stream_rpc_method_handler(echo)}
    with thread_pool(2) as threads:
        server = grpc.server(threads)
        server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler("uamp.v1.Agent", handlers)]
        )
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield f"127.0.0.1:{port}", addresses
        finally:
            server.stop(None).wait(SECONDS)


class StoppingServer(LocalServer):
    """A process that stops: it answers everything with 503."""

    def __init__(self) -> None:
        super().__init__(_Stopping)
        self.requests = 0

    @property
    def place(self) -> str:
        """Its host and port."""
        return self.origin.removeprefix("http://")


class _Stopping(QuietHandler):
    server: StoppingServer

    def do_GET(self) -> None:  # noqa: N802 part of the interface
        """Refuse a request."""
        self.server.requests += 1
        self.send_response(HTTPStatus.SERVICE_UNAVAILABLE)
        self.send_header("Retry-After", "1")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_GET  # noqa: N815 part of the interface


@pytest.mark.django_db(transaction=True)
def test_nginx_sends_reads_and_handshakes_of_a_process_that_stops_to_another(
    demo: ServerAddress, alice: Person, tmp_path: Any
) -> None:
    with (
        serving(StoppingServer()) as stopping,
        running_nginx(tmp_path, web=[stopping.place, f"{demo.host}:{demo.port}"]) as proxy,
        httpx.Client(base_url=f"https://{proxy.place}", verify=proxy.trust, trust_env=False) as web,
    ):
        for _ in range(4):
            url = f"wss://{proxy.place}/uamp"
            with UampClient(url, headers=alice.headers, tls=proxy.trust) as socket:
                socket.create_session(agent="echo")
            assert web.get("/healthz").status_code == HTTPStatus.OK
        # It gets requests again and again: its 503 are not counted as failures of the process.
        assert stopping.requests >= 4


@pytest.mark.any_database
def test_nginx_passes_the_503_on_where_no_process_is_left(tmp_path: Any) -> None:
    with (
        serving(StoppingServer()) as first,
        serving(StoppingServer()) as second,
        running_nginx(tmp_path, web=[first.place, second.place]) as proxy,
        httpx.Client(base_url=f"https://{proxy.place}", verify=proxy.trust, trust_env=False) as web,
    ):
        for _ in range(4):
            answer = web.get("/healthz")
            # Not nginx's own 502.
            assert answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE
            assert answer.headers["Retry-After"] == "1"
        before = first.requests + second.requests
        assert web.post("/events").status_code == HTTPStatus.SERVICE_UNAVAILABLE
        # A process may have begun what a POST asks for: no other one gets it.
        assert first.requests + second.requests == before + 1
