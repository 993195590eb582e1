"""UAMP without a socket: HTTP + SSE (§13.2) and batches (notes/webagents.md §7).

Both are shells around the same handlers and the same runner. `POST /events` takes one event and
answers 202; what it leads to is heard on `GET /events/stream`. `POST /uamp` takes an array of
events and answers with an array; `POST /uamp/stream` answers with a stream.
"""

from __future__ import annotations

import asyncio
import json
import weakref
from typing import TYPE_CHECKING, Any, Final

import msgspec
from channels.layers import get_channel_layer
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.csrf import csrf_exempt

import uamp
from chat_app import fanout
from sessions_app import auth, database, handlers, runner
from sessions_app.opening import attach_session, find_session
from sessions_app.peer import Defaults, Outgoing, Peer
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sessions_app.auth import Principal

HEARTBEAT_SECONDS: Final = 15.0
BATCH_EVENTS: Final = 100
STREAM_HEADERS: Final = {
    "Cache-Control": "no-cache, no-transform",
    # nginx and its kin pass each event on at once.
    "X-Accel-Buffering": "no",
}
_STATUS: Final = {
    ErrorCode.UNAUTHORIZED: 401,
    ErrorCode.TOKEN_EXPIRED: 401,
    ErrorCode.FORBIDDEN: 403,
    ErrorCode.FORBIDDEN_ROLE: 403,
    ErrorCode.AGENT_NOT_FOUND: 404,
    ErrorCode.CHAT_NOT_FOUND: 404,
    ErrorCode.UNKNOWN_SESSION: 404,
    ErrorCode.UNKNOWN_CALL: 404,
    ErrorCode.CONTENT_NOT_FOUND: 404,
    ErrorCode.NOTHING_TO_CANCEL: 409,
    ErrorCode.EVENT_ID_CONFLICT: 409,
    ErrorCode.SESSION_EXISTS: 409,
    ErrorCode.FRAME_TOO_LARGE: 413,
    ErrorCode.RATE_LIMITED: 429,
    ErrorCode.QUEUE_FULL: 429,
    ErrorCode.BUSY: 503,
    ErrorCode.UNAVAILABLE: 503,
    ErrorCode.INTERNAL_ERROR: 500,
}


def problem(error: RemoteProtocolError) -> HttpResponse:
    """Return an error as RFC 9457 has it, with the UAMP event beside it."""
    status = _STATUS.get(error.code, 400)
    body = {
        "type": f"/docs/problems#{error.code}",
        "title": str(error.code).replace("_", " ").capitalize(),
        "status": status,
        "detail": error.message,
        "code": str(error.code),
        "event": uamp.to_dict(error.to_event()),
    }
    response = HttpResponse(
        msgspec.json.encode(body), status=status, content_type="application/problem+json"
    )
    if error.details and "retry_after" in error.details:
        response["Retry-After"] = str(int(float(error.details["retry_after"])) + 1)
    return response


async def _principal(request: HttpRequest) -> Principal:
    """Return who asks; a cookie counts only from our own pages (auth.Handshake)."""
    handshake = auth.Handshake.of(request.scope)  # type: ignore[attr-defined]  # an ASGIRequest
    try:
        return await database.run(auth.identify, handshake)
    except auth.AuthenticationError as error:
        raise RemoteProtocolError(ErrorCode(error.code), str(error)) from None
    except auth.OriginError as error:
        raise RemoteProtocolError(ErrorCode.FORBIDDEN, str(error)) from None


class _Line:
    """A peer on its own channel of the layer, for as long as one HTTP exchange lasts."""

    def __init__(self, request: HttpRequest, principal: Principal, transport: str) -> None:
        self._layer = get_channel_layer()
        self._process = runner.current()
        self._groups: set[str] = set()
        self.channel = ""
        self._listening: asyncio.Task[None] | None = None
        self.peer = Peer(
            principal=principal,
            transport=transport,
            source=self._process,
            origin="",
            follow=self.follow_chat,
            defaults=Defaults(
                agent=_url_agent(request) or request.headers.get("X-Agent-Id"),
                chat=request.headers.get("X-Chat-Id"),
            ),
        )

    async def follow_chat(self, chat_id: str) -> None:
        """Hear a chat's group."""
        await self.follow(fanout.chat_group(chat_id))

    async def follow(self, group: str) -> None:
        """Hear a group of the layer."""
        if self._listening is None:
            self.channel = await self._layer.new_channel()
            self.peer.origin = self.channel
            self._listening = self._process.spawn(self._listen(), name="listen")
            self._process.followers.add(self.peer)
        self._groups.add(group)
        async with asyncio.timeout(fanout.SEND_TIMEOUT_SECONDS):
            await self._layer.group_add(group, self.channel)

    async def _listen(self) -> None:
        while True:
            message = await self._layer.receive(self.channel)
            if message["type"] == "session.frame":
                self.peer.send_frame(message["frame"], message["session"])
            else:
                self.peer.take_layer_message(message)

    async def take(self, raw: bytes) -> None:
        """Do what an event says, to its end: a client that goes leaves no turn half begun."""
        taking = self._process.spawn(handlers.receive(self.peer, raw), name="take")
        try:
            await asyncio.shield(taking)
        finally:
            await asyncio.wait([taking])

    async def close(self) -> None:
        """Hear nothing more; the sessions' responses go on. A second time does nothing."""
        for session_id in list(self.peer.sessions):
            self.peer.detach(session_id)
        self._process.followers.discard(self.peer)
        listening, self._listening = self._listening, None
        if listening is not None:
            listening.cancel()
            await asyncio.wait([listening])
        while self._groups:
            await self._layer.group_discard(self._groups.pop(), self.channel)

    def answer(self, frames: AsyncIterator[bytes]) -> StreamingHttpResponse:
        """Return a streamed answer, with which the line is closed.

        A client may go before the first frame: then nobody ever starts or closes the iterator.
        """
        response = StreamingHttpResponse(
            frames, content_type="text/event-stream", headers=STREAM_HEADERS
        )
        loop = asyncio.get_running_loop()
        weakref.finalize(response, self._leave, loop)
        return response

    def _leave(self, loop: asyncio.AbstractEventLoop) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(
                lambda: self._process.spawn(self.close(), name="close a line")
            )

    async def attach_known(self, session_id: str) -> None:
        """Put a session that stands on this line; raises RemoteProtocolError unknown_session."""
        session = await find_session(session_id, self.peer.principal)
        if session is None:
            raise RemoteProtocolError(
                ErrorCode.UNKNOWN_SESSION, "There is no such session, or it is not yours."
            )
        self.peer.connection.attach(session_id)
        self.peer.attach(session, cursor=session.last_seq)

    def hear_running(self, session_id: str) -> None:
        """Hear on, here, what runs for a session already: a tool.result lets it go on."""
        attached = self.peer.sessions[session_id]
        self.peer.put(attached.feed.catch_up_running)
        for run in list(runner.current().runs.values()):
            if run.context.session_id == session_id:
                run.listen(attached.listener)
                attached.listener.hear(run)


def _url_agent(request: HttpRequest) -> str | None:
    match = request.resolver_match
    return match.kwargs.get("name") if match else None


def protocol_view(view: Any) -> Any:
    """Answer the protocol's errors as problems; programs bring a token, so no CSRF token."""

    async def guarded(request: HttpRequest, **kwargs: str) -> HttpResponseBase:
        try:
            return await view(request, **kwargs)  # type: ignore[no-any-return]
        except RemoteProtocolError as error:
            return problem(error)

    return csrf_exempt(guarded)


# --- HTTP + SSE ---


@protocol_view
async def post_event(request: HttpRequest, name: str = "") -> HttpResponseBase:
    """`POST /events`: one client event. 202 with the direct answers; the rest is streamed."""
    del name
    if request.method != "POST":
        return HttpResponse(status=405, headers={"Allow": "POST"})
    line = _Line(request, await _principal(request), "sse")
    try:
        session_id = request.headers.get("X-Session-ID", "")
        if session_id:
            await line.attach_known(session_id)
        errors: list[RemoteProtocolError] = []
        line.peer.on_error = errors.append
        await line.take(request.body)
        if errors:
            return problem(errors[0])
        replies = line.peer.take_replies()
        opened = next(iter(line.peer.sessions), session_id)
        await _tell_streams(replies)
    finally:
        await line.close()
    body = {"session_id": opened, "events": [json.loads(reply.text) for reply in replies]}
    response = HttpResponse(msgspec.json.encode(body), status=202, content_type="application/json")
    response["X-Session-ID"] = opened
    return response


async def _tell_streams(replies: list[Outgoing]) -> None:
    """Let the session's streams hear the answers too: that is where §13.2 puts them."""
    for reply in replies:
        if reply.session_id:
            await fanout.send(
                fanout.session_group(reply.session_id),
                {"type": "session.frame", "session": reply.session_id, "frame": reply.text},
            )


@protocol_view
async def stream_events(request: HttpRequest, name: str = "") -> HttpResponseBase:
    """`GET /events/stream`: the server's events of one session, from `Last-Event-ID` on."""
    del name
    if request.method != "GET":
        return HttpResponse(status=405, headers={"Allow": "GET"})
    session_id = request.headers.get("X-Session-ID") or request.GET.get("session_id", "")
    line = _Line(request, await _principal(request), "sse")
    session = await find_session(session_id, line.peer.principal) if session_id else None
    if session is None:
        raise RemoteProtocolError(
            ErrorCode.UNKNOWN_SESSION,
            "Name a session of yours in X-Session-ID; POST /events with session.create opens one.",
        )
    if not runner.current().has_room_for(line.peer.principal):
        raise RemoteProtocolError(
            ErrorCode.RATE_LIMITED, "You have too many open connections. Close one first."
        )
    epoch, after = _last_event_id(request.headers.get("Last-Event-ID", ""))
    resume = uamp.Resume(
        session_id=session_id,
        epoch=epoch or session.epoch,
        after=session.opened_seq if after is None else after,
    )
    try:
        await line.follow(fanout.session_group(session_id))
        await attach_session(line.peer, session, ev.SessionCreate(resume=resume))
    except BaseException:
        await line.close()
        raise
    return line.answer(_sse(line, session.epoch))


def _last_event_id(value: str) -> tuple[str, int | None]:
    """Return epoch and seq of `<epoch>:<seq>`; nothing for anything else."""
    epoch, _, seq = value.partition(":")
    return (epoch, int(seq)) if epoch and seq.isascii() and seq.isdigit() else ("", None)


async def _sse(line: _Line, epoch: str) -> AsyncIterator[bytes]:
    try:
        yield b": stream open\n\n"
        async for outgoing in _with_heartbeat(line.peer.frames()):
            if outgoing is None:
                yield b": keep-alive\n\n"
            elif outgoing.seq is None:
                yield f"data: {outgoing.text}\n\n".encode()
            else:
                # Only durable events are numbered: a client that comes back names the last one.
                yield f"id: {epoch}:{outgoing.seq}\ndata: {outgoing.text}\n\n".encode()
    finally:
        await line.close()


async def _with_heartbeat(frames: AsyncIterator[Outgoing]) -> AsyncIterator[Outgoing | None]:
    """Yield frames, and None whenever HEARTBEAT_SECONDS went by without one."""
    following: asyncio.Future[Outgoing] | None = None
    try:
        while True:
            following = following or asyncio.ensure_future(anext(frames))
            done, _ = await asyncio.wait([following], timeout=HEARTBEAT_SECONDS)
            if not done:
                yield None
                continue
            try:
                outgoing = following.result()
            except StopAsyncIteration:
                return
            following = None
            yield outgoing
    finally:
        if following is not None:
            following.cancel()
            await asyncio.wait([following])


# --- Batches ---


@protocol_view
async def batch(request: HttpRequest, name: str = "") -> HttpResponseBase:
    """`POST /uamp`: an array of client events in, an array of server events out."""
    del name
    if request.method != "POST":
        return HttpResponse(status=405, headers={"Allow": "POST"})
    line, events = await _batch_of(request)
    try:
        frames = [outgoing.text async for outgoing in _batch_frames(line, events)]
    finally:
        await line.close()
    return HttpResponse(f"[{','.join(frames)}]", content_type="application/json")


@protocol_view
async def batch_stream(request: HttpRequest, name: str = "") -> HttpResponseBase:
    """`POST /uamp/stream`: an array of client events in, a stream of server events out."""
    del name
    if request.method != "POST":
        return HttpResponse(status=405, headers={"Allow": "POST"})
    line, events = await _batch_of(request)

    async def stream() -> AsyncIterator[bytes]:
        try:
            async for outgoing in _with_heartbeat(_batch_frames(line, events)):
                if outgoing is None:
                    yield b": keep-alive\n\n"
                else:
                    yield f"data: {outgoing.text}\n\n".encode()
            yield b"data: [DONE]\n\n"
        finally:
            await line.close()

    return line.answer(stream())


async def _batch_of(request: HttpRequest) -> tuple[_Line, list[dict[str, Any]]]:
    """Return a line with the standing sessions that the events name, and the events."""
    line = _Line(request, await _principal(request), "batch")
    events = _events_of(request.body, line.peer.limits)
    named = {str(event["session_id"]) for event in events if event.get("session_id")}
    named -= {_opened_by(event) for event in events}
    try:
        for session_id in named:
            await line.attach_known(session_id)
            line.hear_running(session_id)
    except BaseException:
        await line.close()
        raise
    return line, events


def _opened_by(event: dict[str, Any]) -> str:
    """Return the id of the session that a session.create opens, or ''."""
    resume, session = event.get("resume"), event.get("session")
    if event.get("type") == "session.create":
        if isinstance(resume, dict) and resume.get("session_id"):
            return str(resume["session_id"])
        if isinstance(session, dict) and session.get("id"):
            return str(session["id"])
    return ""


def _events_of(body: bytes, limits: uamp.Limits) -> list[dict[str, Any]]:
    events = uamp.load_json(body, limits)
    if isinstance(events, dict):
        events = [events]
    if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
        raise RemoteProtocolError(ErrorCode.INVALID_EVENT, "The body is an array of events.")
    if len(events) > BATCH_EVENTS:
        raise RemoteProtocolError(
            ErrorCode.TOO_MANY_ITEMS, f"A batch has at most {BATCH_EVENTS} events."
        )
    return events


async def _batch_frames(line: _Line, events: list[dict[str, Any]]) -> AsyncIterator[Outgoing]:
    for event in events:
        await line.take(msgspec.json.encode(event))
    line.peer.end_when_idle()
    async for outgoing in line.peer.frames():
        yield outgoing
