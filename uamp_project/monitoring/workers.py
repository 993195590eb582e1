"""The metrics of a worker, which has no web server: its tasks, and a small server of its own.

`start` runs once per worker, with UAMP_WORKER_METRICS_PORT set. The worker's tasks run in threads
of one process, so a single registry has all of them.
"""

from __future__ import annotations

import hmac
import logging
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Final

from celery.signals import task_postrun, task_prerun

from sessions_app import database
from telemetry import metrics

logger = logging.getLogger(__name__)

PORTS: Final = 16
"""How many ports a worker tries, from the given one on: other workers have theirs."""
CLIENT_SECONDS: Final = 5.0
"""How long a client may be silent; requests are answered one after the other."""
_began: dict[str, float] = {}


def start(host: str, port: int, token: str) -> HTTPServer | None:
    """Count the tasks of this process and serve its metrics; None if no port is free.

    A worker without metrics still works, so that is only logged.
    """
    server = _listening(host, port, token)
    if server is None:
        logger.error("no port from %s to %s is free for the worker's metrics", port, _last(port))
        return None
    task_prerun.connect(_begin, weak=False)
    task_postrun.connect(_end, weak=False)
    threading.Thread(target=server.serve_forever, name="worker-metrics", daemon=True).start()
    logger.info("metrics of this worker: port %s", server.server_port)
    return server


def _listening(host: str, port: int, token: str) -> HTTPServer | None:
    handler = type("Handler", (_Handler,), {"token": token})
    for number in range(port, _last(port) + 1):
        try:
            return HTTPServer((host, number), handler)
        except OSError:
            continue  # another process has it
    return None


def _last(port: int) -> int:
    return min(port + PORTS - 1, 65_535)


def _begin(task_id: str, **_: Any) -> None:
    _began[task_id] = time.monotonic()


def _end(task_id: str, task: Any, state: str | None, **_: Any) -> None:
    name = str(task.name).rpartition(".")[2]
    metrics.TASKS.labels(name, "done" if state == "SUCCESS" else "failed").inc()
    if (began := _began.pop(task_id, None)) is not None:
        metrics.TASK_SECONDS.labels(name).observe(time.monotonic() - began)


class _Handler(BaseHTTPRequestHandler):
    """Answers `GET /metrics` with the bearer token of /metrics; anything else is refused."""

    token = ""
    timeout = CLIENT_SECONDS
    server_version = "uamp-worker"
    sys_version = ""

    def do_GET(self) -> None:
        """Send the metrics."""
        if self.path.partition("?")[0] != "/metrics":
            self._answer(HTTPStatus.NOT_FOUND)
            return
        header = self.headers.get("Authorization", "")
        if not hmac.compare_digest(header.encode(), f"Bearer {self.token}".encode()):
            self._answer(HTTPStatus.UNAUTHORIZED)
            return
        try:
            metrics_page = database.scoped(metrics.exposition)
        except Exception:
            # Some gauges are read from rows; the next scrape finds the database again.
            logger.exception("the metrics of this worker were not read")
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE)
        else:
            self._answer(HTTPStatus.OK, *metrics_page)

    def _answer(
        self, status: HTTPStatus, body: bytes = b"", media_type: str = "text/plain"
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing: a scrape is not an event, and its line could have the token's header."""
