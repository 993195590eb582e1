"""The metrics of a real worker: on a port of its own, for callers with the token."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from django.db import OperationalError
from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector

from telemetry import metrics
from tests.threads import join_threads
from uamp_project.monitoring import workers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from http.server import HTTPServer

TOKEN = "a token of the metrics"
GOOD = {"Authorization": f"Bearer {TOKEN}"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[HTTPServer]:
    """Serve the metrics of this process as a worker does, which has none of rows."""
    registry = CollectorRegistry()
    registry.register(metrics.WEBHOOK_ATTEMPTS)
    monkeypatch.setattr(metrics, "REGISTRY", registry)
    before = set(threading.enumerate())
    running = workers.start("127.0.0.1", free_port(), TOKEN)
    assert running is not None
    yield running
    running.shutdown()
    running.server_close()
    join_threads([thread for thread in threading.enumerate() if thread not in before])


def get(server: HTTPServer, path: str = "/metrics", headers: Any = None) -> httpx.Response:
    url = f"http://127.0.0.1:{server.server_port}{path}"
    return httpx.get(url, headers=headers, timeout=20, trust_env=False)


def test_the_token_opens_the_metrics_and_nothing_else(server: HTTPServer) -> None:
    metrics.WEBHOOK_ATTEMPTS.labels("sent").inc(0)
    response = get(server, headers=GOOD)
    assert response.headers["Content-Type"].startswith("text/plain; version=")
    assert 'uamp_webhook_attempts_total{outcome="sent"}' in response.text
    wrong: tuple[dict[str, str | bytes], ...] = (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": b"Bearer \xff"},
    )
    for headers in wrong:
        refused = get(server, headers=headers)
        assert (refused.status_code, refused.text) == (401, "")
    for path in ("/", "/metrics/more", "/" + "a" * 60_000):
        assert get(server, path, headers=GOOD).status_code == 404
    posted = httpx.post(f"http://127.0.0.1:{server.server_port}/metrics", headers=GOOD)
    assert posted.status_code == 501


def test_a_database_that_is_down_is_an_answer(server: HTTPServer) -> None:
    class Broken(Collector):
        def describe(self) -> Any:
            return ()

        def collect(self) -> Any:
            raise OperationalError

    metrics.REGISTRY.register(Broken())
    refused = get(server, headers=GOOD)
    assert (refused.status_code, refused.text) == (503, "")


def test_a_client_that_is_silent_does_not_keep_others_out(
    server: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server.RequestHandlerClass, "timeout", 0.2)
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=20) as silent:
        silent.sendall(b"GET /metrics HTTP/1.1\r\n")
        assert get(server, headers=GOOD).status_code == 200


def test_a_second_worker_takes_the_next_port_and_runs_without_one() -> None:
    with socket.socket() as listening_socket:
        listening_socket.bind(("127.0.0.1", 0))
        listening_socket.listen()
        port = listening_socket.getsockname()[1]
        listener = workers._listening("127.0.0.1", port, TOKEN)
        assert listener is not None
        assert port < listener.server_port < port + workers.PORTS
        listener.server_close()
        assert workers.start("192.0.2.1", port, TOKEN) is None
