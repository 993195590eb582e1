"""An HTTP exchange as a client connection; it receives what its chats send while it is open.

To handlers and runs, an exchange is the same as a socket (UAMP §13.2).
"""

from __future__ import annotations

import asyncio
import logging
import math
import weakref
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.csrf import csrf_exempt

import uamp
from agents_app.rest.problem_kinds import ProblemKind
from agents_app.rest.problems import refusal, wrong_method
from agents_app.rest.rights import ANY, MissingRight
from agents_app.workers.completion import until_done
from sessions_app import database, selectors
from sessions_app.access import auth, rates
from sessions_app.access.principal import AuthenticationError
from sessions_app.access.protocol_rights import check_scope, forbidden
from sessions_app.connection import presence
from sessions_app.connection.client_connection import ClientConnection
from sessions_app.connection.defaults import Defaults
from sessions_app.connection.open_sessions import attached_session
from sessions_app.connection.rate_limit import RateLimited
from sessions_app.connection.remote_responses import RemoteResponses
from sessions_app.handlers import table
from sessions_app.handlers.sessions import find_session, waiting_frames
from sessions_app.handlers.turns.payments import accepted_frames, take_payment_token
from sessions_app.process import registry
from sessions_app.transports.request_defaults import defaults_of
from uamp import ErrorCode, RemoteProtocolError
from uamp.errors.http_status import http_status

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from sessions_app.access.principal import Principal
    from sessions_app.connection.attached_session import AttachedSession
    from sessions_app.connection.outgoing_queue import Outgoing, OutgoingQueue
    from sessions_app.records import OpenSession

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS: Final = 15.0
ELSEWHERE_SECONDS: Final = 0.25
# The key in META for a principal identified before the body was read.
_CALLER: Final = "uamp.caller"
STREAM_HEADERS: Final = {
    "Cache-Control": "no-cache, no-transform",
    # Makes nginx and similar proxies pass events on immediately.
    "X-Accel-Buffering": "no",
}


def problem(error: RemoteProtocolError, *, instance: str) -> HttpResponse:
    """Convert an error to an RFC 9457 problem that includes the UAMP event."""
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
    """Return the seconds until a refused request may be repeated; None if unknown."""
    wait = (error.details or {}).get("retry_after")
    return None if wait is None else math.ceil(float(wait))


async def count_events(
    request: HttpRequest, principal: Principal, events: int = 1, *, kind: str = "events"
) -> None:
    """Count a request's events, or the request under another kind in `rates.KINDS`.

    Raises RemoteProtocolError rate_limited.
    """
    quota = await rates.limiter().take(kind, principal.counted_as, cost=events)
    rates.note(request.scope, quota)  # type: ignore[attr-defined] # an ASGIRequest
    if not quota.allowed:
        raise RateLimited(quota)


async def principal_of(request: HttpRequest, *, protocol: str | None, scope: str) -> Principal:
    """Return the principal of a request; a cookie counts only from our own pages.

    `protocol` and `scope` are the rights that its credential needs (`agents_app.rest.rights`);
    events in the request are checked by their handlers. Raises RemoteProtocolError: unauthorized,
    token_expired, forbidden.
    """
    # Used only once, since a key may be revoked while an answer is streaming.
    cached: Principal | None = request.META.pop(_CALLER, None)
    handshake = auth.Handshake.of(request.scope)  # type: ignore[attr-defined]  # an ASGIRequest
    try:
        identify = partial(auth.identify, handshake, protocol=protocol)
        principal = await database.run(identify) if cached is None else cached
    except AuthenticationError as error:
        raise RemoteProtocolError(ErrorCode(error.code), str(error)) from None
    except auth.OriginError as error:
        raise RemoteProtocolError(ErrorCode.FORBIDDEN, str(error)) from None
    except MissingRight as missing:
        raise forbidden(missing) from None
    check_scope(principal, scope)
    return principal


async def identify_caller(request: HttpRequest, *, protocol: str) -> Principal:
    """Return a request's principal, and cache it for the next call of `principal_of`."""
    principal = await principal_of(request, protocol=protocol, scope=ANY)
    request.META[_CALLER] = principal
    return principal


class HttpExchange:
    """A client connection that lasts for one HTTP exchange.

    The request's task calls its methods. If the client leaves before the first frame of its reply,
    a task of the process calls `close`, possibly for the second time. With `ephemeral`, the
    sessions that it opens are deleted after a while with their private chats (`Session.ephemeral`).
    Transports other than HTTP have no request and pass the `defaults` themselves.
    """

    def __init__(
        self,
        request: HttpRequest | None,
        principal: Principal,
        transport: str,
        *,
        ephemeral: bool = False,
        defaults: Defaults | None = None,
    ) -> None:
        self._request = request
        if defaults is None:
            defaults = Defaults() if request is None else defaults_of(request)
        self._process = registry.current()
        self._watching: set[asyncio.Task[None]] = set()
        self._ends_when_idle = False
        self._remote = RemoteResponses()
        self.connection = ClientConnection(
            principal=principal,
            transport=transport,
            reader=self._process,
            groups=self._process.groups,
            defaults=replace(defaults, ephemeral=ephemeral),
        )
        self.connection.remote = self._remote
        self.connection.on_elsewhere = self._goes_elsewhere

    def stay(self) -> None:
        """Hold sessions attached from now on, until the exchange is closed."""
        self.connection.release = self._release

    def end_with_process(self) -> None:
        """End the exchange at the end of the process; otherwise it has its own time."""
        self._process.connections.add(self.connection)

    def end_when_idle(self) -> None:
        """End the exchange once no response of its sessions can proceed without input."""
        self._ends_when_idle = True
        self.connection.outgoing.end_when(lambda: not self.connection.is_busy())

    def _release(self, session_id: str) -> None:
        released = self._process.followers.release_sessions(
            [session_id], held_by=self.connection.origin
        )
        self._process.spawn(released, name="release")

    async def join(self, group: str) -> None:
        """Join a group of the layer; raises the layer's errors."""
        self._process.followers.add(self.connection)
        await self.connection.groups.join(group)

    async def arrive(self) -> None:
        """Announce to co-members that the person is online, until the exchange is closed."""
        principal, process_id = self.connection.principal, self._process.id
        self.connection.presence_id = await presence.try_to_arrive(principal, process=process_id)

    async def take(self, raw: bytes) -> None:
        """Handle an event to completion, so that a departing client leaves no turn half started."""
        taking = self._process.spawn(table.receive(self.connection, raw), name="take")
        try:
            await until_done(taking)
        finally:
            if self.connection.quota is not None and self._request is not None:
                rates.note(self._request.scope, self.connection.quota)  # type: ignore[attr-defined]  # an ASGIRequest

    async def close(self) -> None:
        """Detach the sessions, whose responses continue. Idempotent."""
        connection = self.connection
        held = connection.session_ids
        for session_id in held:
            connection.detach(session_id)
        if connection.held_by:
            await self._process.followers.release_sessions(held, held_by=connection.held_by)
        self._process.followers.discard(connection)
        self._process.connections.discard(connection)
        for watching in self._watching:
            watching.cancel()
        presence_id, connection.presence_id = connection.presence_id, None
        await connection.leave_groups()
        if presence_id is not None:
            await presence.leave(connection.principal, presence_id)

    def answer(
        self,
        frames: AsyncIterator[bytes],
        *,
        close: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> StreamingHttpResponse:
        """Return a streaming reply that closes the exchange, through `close` if given.

        A client may leave before the first frame, in which case the iterator is neither started nor
        closed.
        """
        self.end_with_process()
        response = StreamingHttpResponse(
            frames, content_type="text/event-stream", headers=STREAM_HEADERS
        )
        loop = asyncio.get_running_loop()
        weakref.finalize(response, self._leave, loop, close or self.close)
        return response

    def _leave(
        self, loop: asyncio.AbstractEventLoop, close: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(
                lambda: self._process.spawn(close(), name="close an exchange")
            )

    async def attach_known(self, session_id: str) -> None:
        """Attach an existing session, for which the request's payment token pays from now on.

        Raises RemoteProtocolError unknown_session.
        """
        session = await find_session(
            session_id, self.connection.principal, receives=self.connection.receives
        )
        await self.attach(session)

    async def attach(self, session: OpenSession | None) -> None:
        """Attach a session that was just read with `known_session`; see `attach_known`."""
        if session is None:
            raise RemoteProtocolError(
                ErrorCode.UNKNOWN_SESSION, "There is no such session, or it is not yours."
            )
        self.connection.protocol.attach(session.wire_id)
        self.connection.attach(session, cursor=session.last_seq)
        # It ends with its credential, like a connection that opens a session.
        self._process.followers.add(self.connection)
        if self.connection.defaults.payment_token:
            await take_payment_token(session, self.connection.defaults.payment_token)

    async def follow_chat(self, session_id: str) -> None:
        """Follow the chat of a session, to receive changes by its other members and agents."""
        chat_id = attached_session(self.connection, session_id).session.chat_id
        await self.connection.join_chat(chat_id)

    async def join_known(self, session_id: str) -> None:
        """Attach an existing session, counting as one of the caller's open connections.

        Raises RemoteProtocolError unknown_session, or rate_limited for too many connections.
        """
        # Counted before waiting, since others may arrive in the meantime.
        self._process.followers.admit(self.connection)
        await self.attach_known(session_id)

    async def join_found(self, session: OpenSession | None) -> None:
        """Attach a session that was just read; see `join_known`."""
        self._process.followers.admit(self.connection)
        await self.attach(session)

    async def follow_running(self, session_id: str) -> None:
        """Follow a session's running responses, one of which a tool.result may continue.

        Responses in other processes arrive through the chat's group, and through the rows if the
        layer loses messages. Raises RemoteProtocolError rate_limited for too many connections.
        """
        connection, attached = self.connection, attached_session(self.connection, session_id)
        live = await database.run(selectors.response_ids_of, attached.session.id, live_only=True)
        if live:  # The exchange waits for what it has not started.
            self._process.followers.admit(connection)
        elsewhere = set(live).difference(self._process.runs)
        if elsewhere:
            await connection.join_chat(attached.session.chat_id)
        for run in list(self._process.runs.values()):
            if run.context.session_id == attached.session.id:
                attached.subscription.follow(run)
        # Anything that ended since the session was read is in the log.
        if elsewhere:
            for text in (
                *await waiting_frames(attached.session),
                *await accepted_frames(attached.session, elsewhere),
            ):
                # The client has received this before.
                self._remote.is_new(text)
        connection.outgoing.put(partial(self._catch_up, attached, elsewhere))
        connection.outgoing.put(attached.subscription.catch_up_running)
        if elsewhere:
            self._remote.ids |= elsewhere
            self._watching.add(
                self._process.spawn(self._watch_elsewhere(attached, elsewhere), name="elsewhere")
            )

    def _goes_elsewhere(self, attached: AttachedSession, response_id: str) -> None:
        """Continue to follow a response that was started here and moved to another process."""
        self._remote.ids.add(response_id)
        following = self._follow_elsewhere(attached, {response_id})
        self._watching.add(self._process.spawn(following, name="elsewhere"))

    async def _follow_elsewhere(self, attached: AttachedSession, begun: set[str]) -> None:
        await self.connection.join_chat(attached.session.chat_id)
        for text in await accepted_frames(attached.session, begun):
            # The local run has sent this to the client.
            self._remote.is_new(text)
        self.connection.outgoing.put(attached.subscription.catch_up)
        self.connection.outgoing.put(attached.subscription.catch_up_running)
        await self._watch_elsewhere(attached, begun)

    async def _watch_elsewhere(self, attached: AttachedSession, watched: set[str]) -> None:
        """Let the exchange end once remote responses have ended or wait for the client."""
        outgoing, session = self.connection.outgoing, attached.session
        while watched & self._remote.ids:
            await asyncio.sleep(ELSEWHERE_SECONDS)
            if not self._ends_when_idle:
                # Events are still being handled, and one of them may let a response proceed.
                continue
            try:
                going_on = await database.run(selectors.going_on, session.id)
                if watched & going_on:
                    outgoing.put(partial(self._catch_up, attached, watched))
                    continue
                for text in await waiting_frames(session):
                    if self._remote.is_new(text):
                        attached.subscription.send_signal(text)
            except (OperationalError, InterfaceError):
                logger.warning("responses of %s cannot be read now", session.id, exc_info=True)
                continue
            outgoing.put(partial(self._catch_up, attached, watched))
            self._remote.ids -= watched
        outgoing.wake()

    async def _catch_up(self, attached: AttachedSession, elsewhere: set[str]) -> None:
        """Send log entries after the accepted payments that belong to them. Queue work.

        An end may be in the log before the layer delivers the acceptance, which is not in the log.
        """
        if elsewhere:
            for text in await accepted_frames(attached.session, elsewhere):
                if self._remote.is_new(text):
                    attached.subscription.emit_signal(text)
        await attached.subscription.catch_up()


def protocol_view(method: str) -> Callable[[Any], Any]:
    """Restrict a view to one method, and convert protocol errors to problems.

    CSRF tokens are not required, since programs bring a token.
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
        return "Open a WebSocket with its handshake (Upgrade: websocket)."
    return ""


async def with_heartbeat(queue: OutgoingQueue) -> AsyncIterator[Outgoing | None]:
    """Yield a queue's frames, and None after every HEARTBEAT_SECONDS without one."""
    while (batch := await queue.batch(HEARTBEAT_SECONDS)) is not None:
        if not batch:
            yield None
        for outgoing in batch:
            yield outgoing
