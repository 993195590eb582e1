"""A model provider that always gives the same answer, and its agent."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from agents_app.models import Agent, ModelProvider
from tests.threads import join_threads
from uamp import ErrorCode


@contextmanager
def provider_that_answers(status: int, data: bytes, *, retry_after: str = "7") -> Iterator[str]:
    """Run a model provider that always gives the same answer; yield its base URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Retry-After", retry_after)
            self.send_header("x-request-id", "req_at_the_provider")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{httpd.server_port}/v1"
        finally:
            httpd.shutdown()
            join_threads([thread])


def model_agent(base_url: str, **fields: Any) -> None:
    """Make the agent `model`, for which that provider answers."""
    Agent.objects.create(
        name="model",
        is_public=True,
        **{"provider": ModelProvider.OPENAI_COMPAT, "model": "m", **fields},
        options={"base_url": base_url},
    )


PROVIDER_FAILURES = {
    ErrorCode.RATE_LIMIT_EXCEEDED: (429, "rate_limit_exceeded"),
    ErrorCode.CONTEXT_LENGTH_EXCEEDED: (400, "context_length_exceeded"),
    ErrorCode.CONTENT_FILTERED: (400, "content_filter"),
}
