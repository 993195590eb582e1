"""Local HTTP servers that stand in for external services, each on a free port."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, TypeVar

from tests.threads import join_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


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


def answer_with(status: int, body: bytes, *headers: tuple[str, str]) -> Callable[..., None]:
    """Return what answers a request in one way."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in (("Content-Length", str(len(body))), *headers):
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)

    return answer


accept = answer_with(202, b"{}")


class KeepAliveServer(LocalServer):
    """Answers posts on connections that it keeps open; `connections` has the bodies on each."""

    def __init__(self) -> None:
        self.connections: list[list[bytes]] = []
        self.ended = threading.Semaphore(0)
        self.answer: Callable[[BaseHTTPRequestHandler], None] = accept
        server = self

        class Handler(QuietHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                """Note a connection."""
                super().setup()
                self.bodies: list[bytes] = []
                server.connections.append(self.bodies)

            def finish(self) -> None:
                """Note its end."""
                super().finish()
                server.ended.release()

            def do_POST(self) -> None:
                """Note a body, and answer."""
                self.bodies.append(self.rfile.read(int(self.headers["content-length"])))
                server.answer(self)

        super().__init__(Handler)


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
