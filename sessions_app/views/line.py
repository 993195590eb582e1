"""One HTTP exchange as a connection: who asks, a peer, and what the chat says meanwhile.

It is what a socket is to `consumers`: the handlers and the runner see no difference (UAMP §13.2).
"""

from __future__ import annotations

import asyncio
import weakref
from typing import TYPE_CHECKING, Any, Final

import msgspec
from channels.layers import get_channel_layer
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.csrf import csrf_exempt

import uamp
from chat_app import fanout
from sessions_app import auth, database, handlers, runner
from sessions_app.opening import find_session
from sessions_app.peer import Defaults, Outgoing, Peer
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sessions_app.auth import Principal

HEARTBEAT_SECONDS: Final = 15.0
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


async def principal_of(request: HttpRequest) -> Principal:
    """Return who asks; a cookie counts only from our own pages (auth.Handshake)."""
    handshake = auth.Handshake.of(request.scope)  # type: ignore[attr-defined]  # an ASGIRequest
    try:
        return await database.run(auth.identify, handshake)
    except auth.AuthenticationError as error:
        raise RemoteProtocolError(ErrorCode(error.code), str(error)) from None
    except auth.OriginError as error:
        raise RemoteProtocolError(ErrorCode.FORBIDDEN, str(error)) from None


class Line:
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


async def with_heartbeat(frames: AsyncIterator[Outgoing]) -> AsyncIterator[Outgoing | None]:
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
