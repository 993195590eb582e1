"""Frames over HTTP: a POST for each frame, a server-sent event stream per session (UAMP §13.2)."""

import asyncio
import logging
from collections import deque
from typing import Any

import httpx2
import msgspec

from uamp.client.errors import UnauthorizedError, error_of_problem
from uamp.client.transports.frames import TransportClosed

logger = logging.getLogger(__name__)

# The server sends a keepalive after 15 seconds without an event.
_SILENCE_SECONDS = 45.0
_QUEUED_FRAMES = 1_000
_REMEMBERED = 1_024


class EventStreamTransport:
    """A POST for each frame, and a stream per session; if one breaks, all of them end."""

    is_ordered = False

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http
        self._frames: asyncio.Queue[str | TransportClosed] = asyncio.Queue(_QUEUED_FRAMES)
        self._streams: dict[str, asyncio.Task[None]] = {}
        self._closed: TransportClosed | None = None
        # Direct answers also arrive in the stream: each is passed on once.
        self._answered: deque[str] = deque(maxlen=_REMEMBERED)

    async def send(self, frame: str, session_id: str | None) -> None:
        """Send a frame and pass on its direct answers. Raises TransportClosed."""
        if self._closed is not None:
            raise self._closed
        headers = {"Content-Type": "application/json"}
        if session_id:
            headers["X-Session-ID"] = session_id
        try:
            answer = await self._http.post("/events", content=frame.encode(), headers=headers)
        except httpx2.TransportError as error:
            raise self._end(f"the request failed: {error}") from None
        await self._take(answer, msgspec.json.decode(frame))

    async def _take(self, answer: httpx2.Response, frame: dict[str, Any]) -> None:
        body = _object(answer.content)
        if answer.status_code == httpx2.codes.ACCEPTED:
            for event in body.get("events", ()):
                self._answered.append(str(event.get("event_id", "")))
                await self._frames.put(msgspec.json.encode(event).decode())
            session_id = str(body.get("session_id") or "")
            if frame["type"] == "session.create":
                await self._follow(session_id, frame.get("resume"))
            elif frame["type"] == "session.end" and session_id in self._streams:
                self._streams.pop(session_id).cancel()
        elif answer.status_code == httpx2.codes.UNAUTHORIZED:
            error = UnauthorizedError(
                str(body.get("detail") or "Unknown key."), code="unauthorized"
            )
            raise self._end("the key was refused", error)
        elif isinstance(body.get("event"), dict):
            await self._frames.put(msgspec.json.encode(body["event"]).decode())
        else:
            refusal = error_of_problem(answer.status_code, body)
            raise self._end(f"the request was refused: {refusal}")

    async def _follow(self, session_id: str, resume: dict[str, Any] | None) -> None:
        if (stream := self._streams.pop(session_id, None)) is not None:
            stream.cancel()
        headers = {"X-Session-ID": session_id}
        if resume:
            headers["Last-Event-ID"] = f"{resume.get('epoch')}:{resume.get('after', 0)}"
        is_open = asyncio.Event()
        task = asyncio.create_task(self._read_stream(headers, is_open))
        self._streams[session_id] = task
        opening = asyncio.create_task(is_open.wait())
        await asyncio.wait({opening, task}, return_when=asyncio.FIRST_COMPLETED)
        opening.cancel()

    async def _read_stream(self, headers: dict[str, str], is_open: asyncio.Event) -> None:
        timeout = httpx2.Timeout(_SILENCE_SECONDS, pool=None)
        try:
            async with self._http.sse("/events/stream", headers=headers, timeout=timeout) as source:
                if source.response.status_code != httpx2.codes.OK:
                    problem = _object(await source.response.aread())
                    refusal = error_of_problem(source.response.status_code, problem)
                    final = refusal if isinstance(refusal, UnauthorizedError) else None
                    self._end(f"the stream was refused: {refusal}", final)
                    return
                is_open.set()
                async for event in source:
                    if event.data:
                        await self._pass_on(event.data)
        except httpx2.TransportError as error:
            self._end(f"the stream broke: {error}")
        else:
            self._end("the server ended the stream")

    async def _pass_on(self, data: str) -> None:
        event_id = _object(data.encode()).get("event_id")
        if event_id is None or event_id not in self._answered:
            await self._frames.put(data)

    def _end(self, message: str, error: Any = None) -> TransportClosed:
        if self._closed is None:
            self._closed = TransportClosed(message, error)
            if self._frames.full():
                self._frames.get_nowait()  # frames lost here arrive again after the resume
            self._frames.put_nowait(self._closed)
        return self._closed

    async def receive(self) -> str:
        """Return the next frame. Raises TransportClosed."""
        frame = await self._frames.get()
        if isinstance(frame, TransportClosed):
            raise frame
        return frame

    async def close(self) -> None:
        """End the streams; their sessions can be resumed."""
        self._end("closed")
        streams = list(self._streams.values())
        self._streams.clear()
        for stream in streams:
            stream.cancel()
        await asyncio.gather(*streams, return_exceptions=True)


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return {}
    return value if isinstance(value, dict) else {}
