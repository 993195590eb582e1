"""One HTTP exchange as a client connection, with what its chats send meanwhile.

It is what a socket is to `consumers`: the handlers and the runner see no difference (UAMP §13.2).
"""

from __future__ import annotations

import asyncio
import logging
import math
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from channels.layers import get_channel_layer
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.csrf import csrf_exempt

import uamp
from agents_app.rest.problems import ProblemKind, refusal, wrong_method
from chat_app.log import fanout
from sessions_app import database, selectors
from sessions_app.access import auth, rates
from sessions_app.connection.client_connection import ClientConnection, Defaults, Outgoing
from sessions_app.connection.http_status import http_status
from sessions_app.connection.rate_limit import rate_limited
from sessions_app.handlers import table
from sessions_app.handlers.sessions import find_session, waiting_frames
from sessions_app.process import registry
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from sessions_app.access.principal import Principal
    from sessions_app.connection.attached_session import AttachedSession

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS: Final = 15.0
ELSEWHERE_SECONDS: Final = 0.25
STREAM_HEADERS: Final = {
    "Cache-Control": "no-cache, no-transform",
    # nginx and its kin pass each event on at once.
    "X-Accel-Buffering": "no",
}


def problem(error: RemoteProtocolError, *, instance: str) -> HttpResponse:
    """Return an error as RFC 9457 has it, with the UAMP event beside it."""
    code = str(error.code)
    title = code.replace("_", " ").capitalize()
    return refusal(
        code,
        kind=ProblemKind(http_status(error.code), title, ""),
        detail=error.message,
        instance=instance,
        retry_after=retry_after(error),
        event=uamp.to_dict(error.to_event()),
    )


def retry_after(error: RemoteProtocolError) -> int | None:
    """Return the seconds after which what was refused may be sent again; None where unknown."""
    wait = (error.details or {}).get("retry_after")
    return None if wait is None else math.ceil(float(wait))


async def count_events(request: HttpRequest, principal: Principal, events: int = 1) -> None:
    """Count the events of a request; raises RemoteProtocolError rate_limited."""
    quota = await rates.limiter().take("events", principal.counted_as, cost=events)
    rates.note(request.scope, quota)  # type: ignore[attr-defined]  # an ASGIRequest
    if not quota.allowed:
        raise rate_limited(quota)


async def principal_of(request: HttpRequest) -> Principal:
    """Return who asks; a cookie counts only from our own pages (auth.Handshake)."""
    handshake = auth.Handshake.of(request.scope)  # type: ignore[attr-defined]  # an ASGIRequest
    try:
        return await database.run(auth.identify, handshake)
    except auth.AuthenticationError as error:
        raise RemoteProtocolError(ErrorCode(error.code), str(error)) from None
    except auth.OriginError as error:
        raise RemoteProtocolError(ErrorCode.FORBIDDEN, str(error)) from None


class HttpExchange:
    """A connection on its own channel of the layer, for as long as one HTTP exchange lasts."""

    def __init__(self, request: HttpRequest, principal: Principal, transport: str) -> None:
        self._request = request
        self._layer = get_channel_layer()
        self._process = registry.current()
        self._groups: set[str] = set()
        self.channel = ""
        self._listening: asyncio.Task[None] | None = None
        self._watching: set[asyncio.Task[None]] = set()
        self.connection = ClientConnection(
            principal=principal,
            transport=transport,
            source=self._process,
            origin="",
            follow=self.follow_chat,
            defaults=defaults_of(request, transport),
        )

    async def follow_chat(self, chat_id: str) -> None:
        """Hear a chat's group."""
        await self.follow(fanout.chat_group(chat_id))

    def stay(self) -> None:
        """Hold the sessions that are put on this exchange from now on, until it is closed."""
        self.connection.release = self._release

    def end_with_process(self) -> None:
        """Let the end of the process end the exchange, which otherwise has its own time."""
        self._process.connections.add(self.connection)

    def _release(self, session_id: str) -> None:
        released = self._process.followers.release_sessions([session_id], held_by=self.channel)
        self._process.spawn(released, name="release")

    async def follow(self, group: str) -> None:
        """Hear a group of the layer."""
        if self._listening is None:
            self.channel = await self._layer.new_channel()
            self.connection.origin = self.channel
            self._listening = self._process.spawn(self._listen(), name="listen")
            self._process.followers.add(self.connection)
        self._groups.add(group)
        async with asyncio.timeout(fanout.SEND_TIMEOUT_SECONDS):
            await self._layer.group_add(group, self.channel)

    async def _listen(self) -> None:
        while True:
            message = await self._layer.receive(self.channel)
            if message["type"] == "session.frame":
                self.connection.send_frame(message["frame"], message["session"])
            else:
                self.connection.take_layer_message(message)

    async def take(self, raw: bytes) -> None:
        """Do what an event says, to its end: a client that goes leaves no turn half begun."""
        taking = self._process.spawn(table.receive(self.connection, raw), name="take")
        try:
            await asyncio.shield(taking)
        finally:
            await asyncio.wait([taking])
            if self.connection.quota is not None:
                rates.note(self._request.scope, self.connection.quota)  # type: ignore[attr-defined]  # an ASGIRequest

    async def close(self) -> None:
        """Hear nothing more; the sessions' responses go on. A second time does nothing."""
        held = self.connection.session_ids
        for session_id in held:
            self.connection.detach(session_id)
        if self.connection.held_by:
            await self._process.followers.release_sessions(held, held_by=self.channel)
        self._process.followers.discard(self.connection)
        self._process.connections.discard(self.connection)
        listening, self._listening = self._listening, None
        if listening is not None:
            listening.cancel()
            await asyncio.wait([listening])
        for watching in self._watching:
            watching.cancel()
        while self._groups:
            await self._layer.group_discard(self._groups.pop(), self.channel)

    def answer(self, frames: AsyncIterator[bytes]) -> StreamingHttpResponse:
        """Return a streamed answer, with which the exchange is closed.

        A client may go before the first frame: then nobody ever starts or closes the iterator.
        """
        self.end_with_process()
        response = StreamingHttpResponse(
            frames, content_type="text/event-stream", headers=STREAM_HEADERS
        )
        loop = asyncio.get_running_loop()
        weakref.finalize(response, self._leave, loop)
        return response

    def _leave(self, loop: asyncio.AbstractEventLoop) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(
                lambda: self._process.spawn(self.close(), name="close an exchange")
            )

    async def attach_known(self, session_id: str) -> None:
        """Attach an existing session; raises RemoteProtocolError unknown_session."""
        session = await find_session(session_id, self.connection.principal)
        if session is None:
            raise RemoteProtocolError(
                ErrorCode.UNKNOWN_SESSION, "There is no such session, or it is not yours."
            )
        self.connection.protocol.attach(session_id)
        self.connection.attach(session, cursor=session.last_seq)

    async def hear_running(self, session_id: str) -> None:
        """Hear on, here, what runs for a session already: a tool.result lets it go on.

        What runs in another process is heard by the chat's group and, for what a layer loses, by
        the rows.
        """
        attached = self.connection.sessions[session_id]
        live = await database.run(selectors.response_ids_of, attached.session.id, live_only=True)
        elsewhere = set(live).difference(self._process.runs)
        if elsewhere:
            await self.connection.hear(attached.session.chat_id)
        for run in list(self._process.runs.values()):
            if run.context.session_id == attached.session.id:
                attached.listener.hear(run)
        # What ended since the session was read is in the log.
        self.connection.put(attached.subscription.catch_up)
        self.connection.put(attached.subscription.catch_up_running)
        if elsewhere:
            for text in await waiting_frames(attached.session):
                # Its client was asked for this before.
                self.connection.ask_once(text)
            self.connection.elsewhere |= elsewhere
            self._watching.add(
                self._process.spawn(self._watch_elsewhere(attached, elsewhere), name="elsewhere")
            )

    async def _watch_elsewhere(self, attached: AttachedSession, watched: set[str]) -> None:
        """Let the exchange end when what runs elsewhere has ended, or waits for the client."""
        connection, session = self.connection, attached.session
        while watched & connection.elsewhere:
            await asyncio.sleep(ELSEWHERE_SECONDS)
            if not connection.ends_when_idle:
                # Its events are still being taken: one of them may let a response go on.
                continue
            try:
                going_on = await database.run(selectors.going_on, session.id)
                if watched & going_on:
                    connection.put(attached.subscription.catch_up)
                    continue
                for text in await waiting_frames(session):
                    if connection.ask_once(text):
                        connection.put(partial(attached.subscription.direct, text))
            except (OperationalError, InterfaceError):
                logger.warning("responses of %s cannot be read now", session.id, exc_info=True)
                continue
            connection.put(attached.subscription.catch_up)
            connection.elsewhere -= watched
        connection.wake()


def defaults_of(request: HttpRequest, transport: str) -> Defaults:
    """Return what a request says of the sessions that it opens, besides their events."""
    return Defaults(
        agent=_url_agent(request) or request.headers.get("X-Agent-Id"),
        chat=request.headers.get("X-Chat-Id"),
        payment_token=_payment_token(request, transport),
    )


def _payment_token(request: HttpRequest, transport: str) -> str | None:
    """Return the token that a request pays with; a batch pays by its headers itself (x402)."""
    if transport == "batch":
        return request.GET.get("payment_token")
    return auth.Handshake.of(request.scope).payment_token or None  # type: ignore[attr-defined]  # an ASGIRequest


def _url_agent(request: HttpRequest) -> str | None:
    match = request.resolver_match
    return match.kwargs.get("name") if match else None


def protocol_view(method: str) -> Callable[[Any], Any]:
    """Answer one method, and the protocol's errors as problems.

    Programs bring a token, so that no CSRF token is asked for.
    """

    def decorated(view: Any) -> Any:
        async def guarded(request: HttpRequest, **kwargs: str) -> HttpResponseBase:
            if request.method != method:
                return wrong_method(request, method, hint=_hint(request))
            try:
                return await view(request, **kwargs)  # type: ignore[no-any-return]
            except RemoteProtocolError as error:
                return problem(error, instance=request.path)

        return csrf_exempt(guarded)

    return decorated


def _hint(request: HttpRequest) -> str:
    if request.path.endswith("/uamp"):
        return "A WebSocket is opened with its handshake (Upgrade: websocket)."
    return ""


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
