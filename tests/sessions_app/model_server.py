"""A model provider on a socket of its own, that plays its script and keeps what it was sent.

It speaks the Chat Completions stream: each answer is a list of choices' deltas, or an HTTP error.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from agents_app.models import Agent, ModelProvider
from tests.threads import join_threads

if TYPE_CHECKING:
    from collections.abc import Iterator

Chunk = dict[str, Any]


def text_chunks(text: str, finish: str = "stop") -> list[Chunk]:
    """Return an answer of one text."""
    return [_choice({"content": text}), _choice({}, finish), _USAGE]


def call_chunks(*calls: tuple[str, str, str], text: str = "") -> list[Chunk]:
    """Return an answer that calls tools: ids, names and arguments."""
    tool_calls = [
        {
            "index": index,
            "id": id_,
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }
        for index, (id_, name, arguments) in enumerate(calls)
    ]
    opening = [_choice({"content": text})] if text else []
    return [*opening, _choice({"tool_calls": tool_calls}), _choice({}, "tool_calls"), _USAGE]


def _choice(delta: Chunk, finish: str | None = None) -> Chunk:
    return {"id": "1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


_USAGE: Chunk = {"id": "1", "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}


class ModelServer:
    """A provider with its next answers, the last of them repeated, and the requests it was sent."""

    def __init__(self, *answers: list[Chunk]) -> None:
        self.answers = list(answers) or [text_chunks("Hello")]
        self.requests: list[dict[str, Any]] = []
        self.url = ""

    @property
    def last(self) -> dict[str, Any]:
        """The body of the last request."""
        return self.requests[-1]

    def agent(self, name: str = "model", **fields: Any) -> Agent:
        """Make a public agent for which this provider answers."""
        options = {"base_url": self.url, **fields.pop("options", {})}
        return Agent.objects.create(
            name=name,
            is_public=True,
            **{"provider": ModelProvider.OPENAI_COMPAT, "model": "m", **fields},
            options=options,
        )


@contextmanager
def model_server(*answers: list[Chunk]) -> Iterator[ModelServer]:
    """Run a provider that gives these answers, one a request."""
    model = ModelServer(*answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            model.requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            chunks = model.answers[min(len(model.requests), len(model.answers)) - 1]
            stream = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
            data = f"{stream}data: [DONE]\n\n".encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        model.url = f"http://127.0.0.1:{httpd.server_port}/v1"
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield model
        finally:
            httpd.shutdown()
            join_threads([thread])


__all__ = ["ModelServer", "call_chunks", "model_server", "text_chunks"]
