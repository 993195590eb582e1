"""A small UAMP client for tests over real sockets: WebSocket (§13.1) and HTTP + SSE (§13.2).

It adds only an `event_id` to events that a test sends, and returns every frame it receives, in
order. `Story` is the knowledge of a client after all frames of all its connections.
"""

from __future__ import annotations

import json
import time
import uuid
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import httpx
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

Frame = dict[str, Any]

WAIT_SECONDS = 60.0
TERMINAL = frozenset({"response.done", "response.error", "response.cancelled"})


def new_event(type_: str, **fields: Any) -> Frame:
    """Return a client event with a unique `event_id`."""
    return {"type": type_, "event_id": str(uuid.uuid4()), **fields}


class UampClient:
    """One WebSocket. Waits are limited to WAIT_SECONDS, after which they fail."""

    def __init__(
        self,
        url: str,
        *,
        headers: dict[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._opened = ExitStack()
        self.socket = self._opened.enter_context(
            connect(
                url,
                additional_headers=headers,
                ssl=tls,
                compression=None,
                max_size=None,
                max_queue=None,
                ping_interval=None,
                close_timeout=2,
                proxy=None,
            )
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Send a close frame and close."""
        self._opened.close()

    def cut(self) -> None:
        """Drop the connection without a close frame, as a network failure does."""
        self.socket.close_socket()

    # --- Out ---

    def send(self, type_: str, **fields: Any) -> str:
        """Send an event and return its `event_id`."""
        event = new_event(type_, **fields)
        self.send_raw(json.dumps(event))
        event_id: str = event["event_id"]
        return event_id

    def send_raw(self, frame: str | bytes) -> None:
        """Send a frame unchanged."""
        self.socket.send(frame)

    # --- In ---

    def receive(self, timeout: float = WAIT_SECONDS) -> Frame:
        """Return the next frame; raises TimeoutError."""
        frame: Frame = json.loads(self.socket.recv(timeout=timeout))
        return frame

    def expect(self, *types: str) -> Frame:
        """Return the last of the next frames, which must have these types, in order.

        `usage.delta` may come in between: one follows each inference (UAMP §6.16).
        """
        frame: Frame = {}
        for expected in types:
            frame = self.receive()
            while frame["type"] == "usage.delta" != expected:
                frame = self.receive()
            assert frame["type"] == expected, frame
        return frame

    def until(self, *types: str, timeout: float = WAIT_SECONDS) -> list[Frame]:
        """Return the next frames up to the first with one of these types."""
        frames: list[Frame] = []
        deadline = time.monotonic() + timeout
        while not frames or frames[-1]["type"] not in types:
            try:
                frames.append(self.receive(max(0.01, deadline - time.monotonic())))
            except TimeoutError:
                received_types = [frame["type"] for frame in frames]
                raise AssertionError(
                    f"no {types} within {timeout} s, but {received_types}"
                ) from None
        return frames

    def settle(self) -> list[Frame]:
        """Return the frames that the server sends before it answers a ping."""
        event_id = self.send("ping")
        frames: list[Frame] = []
        while True:
            frame = self.receive()
            if frame["type"] == "pong" and frame["reply_to"] == event_id:
                return frames
            frames.append(frame)

    def during(self, seconds: float) -> list[Frame]:
        """Return the frames received within some seconds."""
        frames: list[Frame] = []
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            try:
                frames.append(self.receive(left))
            except TimeoutError:
                break
        return frames

    def close_code(self) -> int:
        """Wait for the server to close without sending anything, and return its close code."""
        try:
            frame = self.socket.recv(timeout=WAIT_SECONDS)
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else 1006
        raise AssertionError(f"the server did not close but said {frame!r}")

    # --- Common exchanges ---

    def create_session(self, **fields: Any) -> Frame:
        """Open a session and return its `session.created`."""
        self.send("session.create", **{"uamp_version": "1.0", "session": {}, **fields})
        created = self.expect("session.created")
        self.expect("capabilities")
        return created

    def ask(self, text: str, **fields: Any) -> None:
        """Send a turn: `input.text`, then `response.create`."""
        self.send("input.text", text=text, **fields)
        self.send("response.create", **fields)

    def answer(self, text: str, **fields: Any) -> list[Frame]:
        """Send a turn and return the frames up to the end of its response."""
        self.ask(text, **fields)
        return self.until(*TERMINAL)


def text_of(frames: Iterable[Frame], response_id: str | None = None) -> str:
    """Assemble the text of deltas by their offsets."""
    text = ""
    for frame in frames:
        if frame["type"] != "response.delta" or frame["delta"]["type"] != "text":
            continue
        if response_id in {None, frame["response_id"]}:
            text = text[: frame["offset"]] + frame["delta"]["text"]
    return text


def output_text(frame: Frame) -> str:
    """Return the text of the output in a terminal event."""
    output = frame["response"]["output"] if "response" in frame else frame["partial_output"]
    return "".join(item["text"] for item in output if item["type"] == "text")


@dataclass
class Story:
    """The knowledge of a client about a chat after all frames of all connections.

    `log` holds the durable events by `seq`, `texts` the text of each response. A gap in a text, and
    a durable event that is repeated on one connection or has changed, are failures.
    """

    after: int = 0
    epoch: str = ""
    log: dict[int, Frame] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    def take(self, frame: Frame) -> None:
        """Process a frame."""
        type_ = frame["type"]
        if type_ == "session.created":
            self.epoch = frame["epoch"]
        elif type_ == "response.delta" and frame["delta"]["type"] == "text":
            text = self.texts.get(frame["response_id"], "")
            assert frame["offset"] in {0, len(text)}, (frame, text)
            self.texts[frame["response_id"]] = text[: frame["offset"]] + frame["delta"]["text"]
        elif "seq" in frame:
            assert frame["seq"] > self.after, (frame, self.after)
            self.after = frame["seq"]
            self.log[self.after] = {k: v for k, v in frame.items() if k != "session_id"}
            if type_ in TERMINAL:
                # Deltas add up to the output; a response missed completely has none. A process that
                # is killed may have shown more than it had stored.
                text, output = self.texts.get(frame["response_id"], ""), output_text(frame)
                if frame.get("error", {}).get("code") == "interrupted":
                    text = text[: len(output)]
                assert text in {"", output}, (frame, text)
                self.texts[frame["response_id"]] = output

    def take_all(self, frames: Iterable[Frame]) -> Self:
        """Process frames in order."""
        for frame in frames:
            self.take(frame)
        return self


# --- HTTP ---


@dataclass
class SseEvent:
    """One server-sent event."""

    id: str
    data: Any


class EventStream:
    """An open `text/event-stream`."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.comments: list[str] = []
        self._lines = response.iter_lines()

    def __iter__(self) -> Iterator[SseEvent]:
        id_ = ""
        data: list[str] = []
        for line in self._lines:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if not line and data:
                yield SseEvent(id_, _decoded("\n".join(data)))
                id_, data = "", []
            elif not name and line:
                self.comments.append(value)
            elif name == "id":
                id_ = value
            elif name == "data":
                data.append(value)

    def until(self, *types: str) -> list[SseEvent]:
        """Return the events up to the first with one of these types."""
        events = []
        for event in self:
            events.append(event)
            if event.data["type"] in types:
                return events
        raise AssertionError(f"the stream ended before any of {types}")


def _decoded(data: str) -> Any:
    return data if data == "[DONE]" else json.loads(data)


@contextmanager
def open_stream(
    client: httpx.Client, method: str, url: str, **options: Any
) -> Iterator[EventStream]:
    """Open a stream of server-sent events; the response must be 200."""
    with client.stream(method, url, **options) as response:
        if response.status_code != httpx.codes.OK:
            response.read()
            raise AssertionError(f"{response.status_code} {response.text}")
        yield EventStream(response)


def wait_until(holds: Callable[[], bool], seconds: float = WAIT_SECONDS) -> None:
    """Wait until a condition holds; the longer it takes, the less often this checks it."""
    began = time.monotonic()
    while not holds():
        waited = time.monotonic() - began
        assert waited < seconds, "it did not become true"
        time.sleep(min(max(0.01, waited / 20), 0.25))
