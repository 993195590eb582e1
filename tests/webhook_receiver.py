"""A local receiver of webhooks, the only address that may be contacted."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests.http_server import LocalServer, QuietHandler, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from email.message import Message as HeaderFields

    import httpx
    from pytest_django.fixtures import Settings


@dataclass
class Receiver:
    """A receiver of webhooks that answers with each of `statuses` in turn, then with 200."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    seen: list[tuple[HeaderFields, bytes]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """Return the bodies received, as JSON."""
        return [json.loads(body) for _, body in self.seen]


@pytest.fixture
def receiver(
    web: httpx.Client, settings: Settings, celery_worker_thread: None
) -> Iterator[Receiver]:
    """Yield a receiver, with a running worker that sends."""
    webhook_receiver = Receiver()

    class Handler(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802 part of the interface
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with webhook_receiver.lock:
                webhook_receiver.seen.append((self.headers, body))
                status = webhook_receiver.statuses.pop(0) if webhook_receiver.statuses else 200
            self.send_response(status)
            if status == 302:
                self.send_header("Location", webhook_receiver.url)
            self.send_header("Content-Length", "0")
            self.end_headers()

    with serving(LocalServer(Handler)) as server:
        webhook_receiver.url = f"{server.origin}/hook"
        settings.UAMP_FETCH_ALLOW_HOSTS = [server.origin.removeprefix("http://")]
        yield webhook_receiver
