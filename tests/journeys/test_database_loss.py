"""PostgreSQL is unreachable for a while: writes are refused, and connections stay open."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import httpx
import pytest

from tests import services
from tests.client import text_of
from tests.journeys.cluster import join, running_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.long, pytest.mark.redis, pytest.mark.timeout(300)]


class Line:
    """A TCP proxy in front of PostgreSQL; while it is cut, all connections are closed."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self._is_cut = False
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Close all connections, and new ones too."""
        self._is_cut = True
        for end in list(self._open):
            _shut(end)

    def mend(self) -> None:
        """Let connections through again."""
        self._is_cut = False

    def close(self) -> None:
        """Accept no more connections."""
        self.cut()
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self._is_cut:
                    client.close()
                    continue
                server = socket.create_connection(self._target)
                self._open |= {client, server}
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=self._pump, args=ends, daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        _shut(source)
        _shut(target)


def _shut(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    """Connect the cluster's processes to PostgreSQL through a line that can be cut."""
    address = services.postgres()
    if address is None:
        pytest.skip("no PostgreSQL: set TEST_DATABASE_URL or install postgresql")
    parts = urlsplit(address)
    line = Line(parts.hostname or "127.0.0.1", parts.port or 5432)
    user = f"{parts.username}@" if parts.password is None else f"{parts.username}:{parts.password}@"
    led = urlunsplit(parts._replace(netloc=f"{user}127.0.0.1:{line.port}"))
    monkeypatch.setattr(services, "postgres", lambda: led)
    yield line
    line.close()


def test_a_turn_is_refused_and_its_connection_serves_the_next_one(
    line: Line, redis_url: str, tmp_path: Path
) -> None:
    with (
        running_cluster(redis_url, tmp_path) as cluster,
        cluster.socket(0, "alice") as client,
    ):
        chat_id = cluster.product.chat_id
        join(client, chat_id)
        line.cut()
        try:
            client.send("input.text", text="@echo one")
            client.send("response.create")
            frames = client.until("session.error", timeout=120) + client.settle()
            refused = {f["error"]["code"] for f in frames if f["type"] == "session.error"}
            waits = {f["error"]["details"]["retry_after"] for f in frames if "error" in f}
            assert (refused, waits) == ({"unavailable"}, {5})
            assert "response.created" not in {frame["type"] for frame in frames}
        finally:
            line.mend()
        frames = []
        # The connection pool reconnects to PostgreSQL automatically.
        while not frames or frames[-1]["type"] != "response.done":
            client.send("input.text", text="@echo two")
            client.send("response.create")
            frames = client.until("response.done", "session.error", timeout=60)
        assert text_of(frames).endswith("two")
        key = cluster.product.people["alice"]["api_key"]
        history = httpx.get(
            f"http://127.0.0.1:{cluster.ports[0]}/api/v1/chats/{chat_id}/messages",
            headers={"Authorization": f"Bearer {key}"},
            trust_env=False,
        ).json()["data"]
        assert [m["content"] for m in history if m["role"] == "user"] == ["@echo two"]
