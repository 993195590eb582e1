"""A client's WebSocket, in the dialect of its protocol (ASGI).

`SocketApplication` admits clients by key, origin and number of connections. `ClientSocket` is an
accepted socket: it reads at the rate allowed to the client, sends the connection's queue at the
pace of the client, limits frame sizes, keeps a quiet socket alive, and ends with the process. A
`SocketDialect` interprets the frames of one protocol, such as UAMP (`websocket`). Everything runs
on the event loop; database access goes through `database.run`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from django.conf import settings

from agents_app.rest.rights import MissingRight
from sessions_app import database
from sessions_app.access import auth
from sessions_app.access.pacing import Pace
from sessions_app.access.principal import AuthenticationError
from sessions_app.access.protocol_rights import protocol_of
from sessions_app.connection.client_connection import (
    CLOSE_RESTART,
    CLOSE_UNAUTHORIZED,
    ClientConnection,
)
from sessions_app.connection.defaults import Defaults
from sessions_app.process import registry
from telemetry import access_log

if TYPE_CHECKING:
    from sessions_app.access.principal import Principal
    from sessions_app.connection.outgoing_queue import Outgoing

logger = logging.getLogger(__name__)

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

CLOSE_FORBIDDEN: Final = 4403
CLOSE_TOO_LARGE: Final = 1009
CLOSE_DEFECT: Final = 1011
CLOSE_TOO_MANY: Final = 4429
CLOSE_UNRESPONSIVE: Final = 1013

WEIGHED_BYTES: Final = 64 * 1024
"""A larger frame counts as several events, since it takes as long to read."""
JOINED_TEXTS: Final = "uamp.texts"
"""Server extension: `websocket.send` accepts `texts`, several messages in order."""
JOINED_CHARS: Final = 16 * 1024
"""Larger batches are sent text by text, so that the server can wait for its client in between."""


class HandshakeRefused(Exception):
    """The socket is refused; `code` is a WebSocket close code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class SocketDialect:
    """The frames of one protocol on one socket; subclassed for each protocol.

    One is created per socket before it is accepted, and may raise HandshakeRefused. The socket's
    task calls `opened`, `receive` and `closed`; its pump calls `encode`. The dialect's own frames
    go through `connection.send_dialect_frame`, in order with the events.
    """

    # The transport name of its sessions (SessionTransport).
    transport: ClassVar[str]
    # Whether client secrets can open its sockets (access.tickets).
    takes_client_secrets: ClassVar[bool] = False
    # Send a `heartbeat` frame after this many seconds of silence; None for no heartbeat.
    heartbeat_seconds: ClassVar[float | None] = None
    # How many events the last received frame counts as (UAMP_EVENTS_PER_MINUTE); set from its size
    # before `receive`, which may change it.
    weight: float = 1

    def __init__(self, connection: ClientConnection, handshake: auth.Handshake) -> None:
        self.connection = connection
        self.handshake = handshake

    @property
    def subprotocol(self) -> str | None:
        """The subprotocol that the server selects from `handshake.dialects`."""
        return None

    @property
    def headers(self) -> Iterable[tuple[bytes, bytes]]:
        """Additional headers of the 101 response."""
        return ()

    @property
    def frame_bytes(self) -> int | None:
        """The maximum size of a client's frame in bytes; larger ones close the socket with 1009.

        None if `receive` itself limits frames.
        """
        limits, is_known = self.connection.limits, self.connection.protocol.authenticated
        return limits.frame_bytes if is_known else limits.unauthenticated_frame_bytes

    async def opened(self) -> None:
        """Start: the socket is accepted, and frames can be sent."""

    async def receive(self, frame: str | bytes) -> None:
        """Handle a frame of the client; invalid frames get the dialect's own error."""
        raise NotImplementedError

    def encode(self, batch: Sequence[Outgoing]) -> Iterable[str]:
        """Return the frames of a batch: UAMP events translated, and `DialectFrame`s unchanged."""
        raise NotImplementedError

    def heartbeat(self) -> str:
        """Return a frame that keeps a quiet socket alive."""
        raise NotImplementedError

    async def closed(self) -> None:
        """Release whatever `opened` and `receive` acquired; sessions are already released."""


class SocketApplication:
    """Serves the sockets of a dialect (ASGI). The URL may name an agent or a chat."""

    def __init__(self, dialect: type[SocketDialect]) -> None:
        self._dialect = dialect

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one socket until it ends."""
        await receive()  # websocket.connect
        try:
            dialect = await self._admitted(scope)
        except HandshakeRefused as refused:
            await _refuse(scope, send, refused.code)
            return
        await send(
            {
                "type": "websocket.accept",
                "subprotocol": dialect.subprotocol,
                "headers": list(dialect.headers),
            }
        )
        joins_texts = JOINED_TEXTS in scope.get("extensions", {})
        socket = ClientSocket(dialect, send, joins_texts=joins_texts)
        try:
            await socket.open()
            await socket.read(receive)
        finally:
            await socket.close()

    async def _admitted(self, scope: Scope) -> SocketDialect:
        """Return a socket's dialect; refuses foreign pages and invalid keys before accepting."""
        process = registry.current()
        if process.draining:
            raise HandshakeRefused(CLOSE_RESTART)
        handshake = auth.Handshake.of(scope)
        try:
            principal, bound = await self._identified(handshake)
        except (auth.OriginError, MissingRight):
            raise HandshakeRefused(CLOSE_FORBIDDEN) from None
        except AuthenticationError:
            raise HandshakeRefused(CLOSE_UNAUTHORIZED) from None
        access_log.note(route=self._dialect.transport)
        if not process.followers.has_room_for(principal):
            raise HandshakeRefused(CLOSE_TOO_MANY)
        url = scope["url_route"]["kwargs"]
        agent = url.get("agent") or handshake.headers.get("x-agent-id")
        if bound is not None:
            if agent is not None and agent.casefold() != bound.agent.casefold():
                raise HandshakeRefused(CLOSE_FORBIDDEN)
            agent = bound.agent
        connection = ClientConnection(
            principal=principal,
            transport=self._dialect.transport,
            reader=process,
            groups=process.groups,
            defaults=Defaults(
                agent=agent,
                chat=url.get("chat_id") or handshake.headers.get("x-chat-id"),
                payment_token=handshake.payment_token or None,
                base_url=_base_url(handshake),
                bound=bound,
            ),
        )
        return self._dialect(connection, handshake)

    async def _identified(
        self, handshake: auth.Handshake
    ) -> tuple[Principal, auth.BoundSessions | None]:
        protocol = protocol_of(self._dialect.transport)
        if self._dialect.takes_client_secrets:
            return await database.run(partial(auth.identify_bound, handshake, protocol=protocol))
        identify = partial(auth.identify, handshake, protocol=protocol)
        return await database.run(identify), None


async def _refuse(scope: Scope, send: Send, code: int) -> None:
    """Refuse a handshake: servers answer a close before `accept` with 403.

    A process that stops answers 503 instead, where its server can, so that clients try another.
    """
    if code != CLOSE_RESTART or "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": code})
        return
    headers = [(b"retry-after", b"1"), (b"content-length", b"0")]
    await send({"type": "websocket.http.response.start", "status": 503, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": b""})


class ClientSocket:
    """An accepted socket.

    The socket's ASGI task opens, reads and closes it; the pump is a task of the process.
    """

    def __init__(self, dialect: SocketDialect, send: Send, *, joins_texts: bool) -> None:
        self._dialect = dialect
        self._joins_texts = joins_texts
        self._connection = dialect.connection
        self._send = send
        self._process = registry.current()
        self._tasks: list[asyncio.Task[None]] = []
        self._is_quiet = True
        self._pace = Pace(
            per_minute=settings.UAMP_EVENTS_PER_MINUTE,
            burst=settings.UAMP_EVENTS_BURST,
            left=settings.UAMP_EVENTS_BURST,
            at=time.monotonic(),
        )
        self._connection.release = self._release

    async def open(self) -> None:
        """Start sending, and start the dialect."""
        connection, process = self._connection, self._process
        process.followers.add(connection)
        process.connections.add(connection)
        self._tasks.append(process.spawn(self._send_frames(), name="pump"))
        if self._dialect.heartbeat_seconds is not None:
            beating = self._send_heartbeats(self._dialect.heartbeat_seconds)
            self._tasks.append(process.spawn(beating, name="heartbeat"))
        await self._dialect.opened()

    async def read(self, receive: Receive) -> None:
        """Handle frames until the socket is closed.

        A client that sends too fast is read more slowly, without buffering.
        """
        connection, dialect = self._connection, self._dialect
        while (message := await receive())["type"] == "websocket.receive":
            if pause := self._pace.wait(time.monotonic()):
                await asyncio.sleep(pause)
            await connection.outgoing.wait_for_room()
            text = message.get("text")
            frame = message["bytes"] if text is None else text
            limit = dialect.frame_bytes
            if limit is not None and _is_longer(frame, limit):
                connection.close(CLOSE_TOO_LARGE)
            elif connection.closed_with is None:
                dialect.weight = max(1, len(frame) / WEIGHED_BYTES)
                await dialect.receive(frame)
                self._pace.weigh(dialect.weight)
        logger.debug("socket closed with %s", message.get("code"))

    async def close(self) -> None:
        """Release the sessions, which can be resumed; their responses continue."""
        connection, process = self._connection, self._process
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        held = connection.session_ids
        for session_id in held:
            connection.detach(session_id)
        process.followers.discard(connection)
        process.connections.discard(connection)
        await process.followers.release_sessions(held, held_by=connection.held_by)
        try:
            await connection.leave_groups()
        finally:
            await self._dialect.closed()

    async def _send_frames(self) -> None:
        outgoing = self._connection.outgoing
        try:
            while (batch := await outgoing.batch()) is not None:
                self._is_quiet = False
                texts = self._encoded(batch)
                # A client that has stopped reading is disconnected below (UAMP_STALL_SECONDS) and
                # can resume what it missed.
                if self._joins_texts and 0 < sum(map(len, texts)) <= JOINED_CHARS:
                    await self._send({"type": "websocket.send", "texts": texts})
                    continue
                for text in texts:
                    await self._send({"type": "websocket.send", "text": text})
            await self._send({"type": "websocket.close", "code": outgoing.closed_with})
        except Exception:
            # The socket may have closed in the middle of a send.
            logger.debug("the socket went while frames were sent", exc_info=True)
            with contextlib.suppress(Exception):
                await self._send({"type": "websocket.close", "code": CLOSE_UNRESPONSIVE})
        finally:
            outgoing.abandon()

    def _encoded(self, batch: Sequence[Outgoing]) -> Sequence[str]:
        """Return the frames of a batch; a failure of the dialect closes the socket with 1011."""
        try:
            return list(self._dialect.encode(batch))
        except Exception:
            logger.exception("events were not encoded as frames of %s", self._dialect.transport)
            self._connection.outgoing.refuse(CLOSE_DEFECT)
            return ()

    async def _send_heartbeats(self, seconds: float) -> None:
        while True:
            self._is_quiet = True
            await asyncio.sleep(seconds)
            if self._is_quiet:
                self._connection.send_dialect_frame(self._dialect.heartbeat())

    def _release(self, session_id: str) -> None:
        held_by = self._connection.held_by
        released = self._process.followers.release_sessions([session_id], held_by=held_by)
        self._process.spawn(released, name="release")


def _base_url(handshake: auth.Handshake) -> str:
    """Return this server's address as used by the client; "" for an unknown host."""
    try:
        return handshake.base_url
    except auth.OriginError:
        return ""


def _is_longer(frame: str | bytes, limit: int) -> bool:
    """Return whether a frame is longer in bytes; text is encoded only if that can matter."""
    if len(frame) * 4 <= limit:
        return False
    return len(frame if isinstance(frame, bytes) else frame.encode("utf-8", "replace")) > limit
