"""A cheap model provider: `python -m benchmarks.stubs.model PORT`.

Streams Chat Completions and answers every request with MODEL_WORDS words (20 by default), one chunk
each, MODEL_PAUSE_MS milliseconds apart (2 by default), so that each arrives separately. The first
word carries the time when it was written, as `t=<ns>` of the clock shared by all processes. A
paragraph has 50 words.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from typing import Any, Final

WORDS: Final = int(os.environ.get("MODEL_WORDS", "20"))
PARAGRAPH_WORDS: Final = 50
PAUSE_SECONDS: Final = float(os.environ.get("MODEL_PAUSE_MS", "2")) / 1000
HEAD: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)


def _event(value: str) -> bytes:
    data = f"data: {value}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(data), data)


def _chunk(choices: list[dict[str, Any]], **more: Any) -> bytes:
    return _event(
        json.dumps({"id": "1", "object": "chat.completion.chunk", "choices": choices} | more)
    )


def _delta(text: str) -> bytes:
    return _chunk([{"index": 0, "delta": {"content": text}, "finish_reason": None}])


REST: Final = [
    _delta(f"word{number:02}" + (" " if number % PARAGRAPH_WORDS else "\n\n"))
    for number in range(2, WORDS + 1)
]
END: Final = (
    _chunk([{"index": 0, "delta": {}, "finish_reason": "stop"}])
    + _chunk([], usage={"prompt_tokens": 20, "completion_tokens": WORDS, "total_tokens": 40})
    + _event("[DONE]")
    + b"0\r\n\r\n"
)


class ModelConnection(asyncio.Protocol):
    """A client's connection, which handles one request after another."""

    def __init__(self) -> None:
        self._received = bytearray()

    def connection_made(self, transport: Any) -> None:
        """Keep the transport."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer once the request is complete; its body has a Content-Length."""
        self._received += data
        head, separator, body = self._received.partition(b"\r\n\r\n")
        if not separator:
            return
        sizes = [
            line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
        ]
        if len(body) < int(sizes[0].partition(b":")[2]):
            return
        self._received.clear()
        self._transport.write(HEAD + _delta(f"t={time.perf_counter_ns()} "))
        self._go_on(0)

    def _go_on(self, place: int) -> None:
        if self._transport.is_closing():
            return
        if place:
            self._transport.write(REST[place - 1])
        if place < len(REST):
            asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._go_on, place + 1)
        else:
            self._transport.write(END)


async def serve(port: int) -> None:
    """Serve until SIGTERM."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    await loop.create_server(ModelConnection, "127.0.0.1", port)
    await ended.wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
