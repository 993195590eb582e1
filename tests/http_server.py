"""Local HTTP servers that stand in for external services, each on a free port."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, TypeVar

from tests.threads import join_threads

if TYPE_CHECKING:
    from collections.abc import Iterator


class LocalServer(ThreadingHTTPServer):
    """A server on a free port, whose requests do not keep the process alive."""

    daemon_threads = True

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)

    @property
    def origin(self) -> str:
        """The origin of its URLs."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class QuietHandler(BaseHTTPRequestHandler):
    """A request handler without logging."""

    def log_message(self, *_arguments: Any) -> None:
        """Log nothing."""


AnyServer = TypeVar("AnyServer", bound=ThreadingHTTPServer)


@contextmanager
def serving(server: AnyServer) -> Iterator[AnyServer]:
    """Run a server in a thread for the length of a block."""
    thread = threading.Thread(target=server.serve_forever, name=type(server).__name__)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        join_threads([thread])
