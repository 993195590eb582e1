"""A model provider that does not stop by itself."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from tests.threads import join_threads

if TYPE_CHECKING:
    from collections.abc import Iterator


class Upstream:
    """A model provider that sends words until its client leaves."""

    def __init__(self) -> None:
        self.url = ""
        self.said = 0
        self.was_left = threading.Event()


@contextmanager
def endless_provider() -> Iterator[Upstream]:
    """Run a provider on its own socket."""
    upstream = Upstream()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            try:
                while True:
                    choice = {"index": 0, "delta": {"content": f"w{upstream.said} "}}
                    data = json.dumps({"id": "1", "choices": [choice]})
                    self.wfile.write(f"data: {data}\n\n".encode())
                    self.wfile.flush()
                    upstream.said += 1
                    time.sleep(0.05)
            except OSError:
                upstream.was_left.set()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        httpd.daemon_threads = True
        upstream.url = f"http://127.0.0.1:{httpd.server_port}/v1"
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield upstream
        finally:
            httpd.shutdown()
            join_threads([thread])
