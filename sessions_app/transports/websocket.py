"""UAMP over WebSocket (§13.1): one event per text frame, sessions multiplexed (§10).

Incoming frames go to `handlers.table`; a connection's queue is sent at the pace of its socket.
Nothing here hops to a thread; what touches the database goes through `database.run`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias

from django.conf import settings
from django.db import DatabaseError, InterfaceError

from sessions_app import database
from sessions_app.access import auth
from sessions_app.access.pacing import Pace
from sessions_app.connection import presence
from sessions_app.connection.client_connection import (
    CLOSE_RESTART,
    CLOSE_UNAUTHORIZED,
    ClientConnection,
    Defaults,
)
from sessions_app.handlers import table
from sessions_app.process import registry

logger = logging.getLogger(__name__)

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

CLOSE_FORBIDDEN: Final = 4403
CLOSE_TOO_MANY: Final = 4429
CLOSE_UNRESPONSIVE: Final = 1013


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve one socket (ASGI). The URL may name an agent or a chat for its sessions."""
    await receive()  # websocket.connect
    try:
        connection = await _admitted(scope)
    except _RefusedError as refused:
        await send({"type": "websocket.close", "code": refused.code})
        return
    await send({"type": "websocket.accept"})
    socket = UampSocket(connection, send)
    try:
        await socket.open()
        await socket.read(receive)
    finally:
        await socket.close()


class _RefusedError(Exception):
    """The socket is not accepted; `code` is a WebSocket close code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


async def _admitted(scope: Scope) -> ClientConnection:
    """Return a connection; refuse a foreign page and a bad token before accepting."""
    process = registry.current()
    if process.draining:
        raise _RefusedError(CLOSE_RESTART)
    handshake = auth.Handshake.of(scope)
    try:
        principal = await database.run(auth.identify, handshake)
    except auth.OriginError:
        raise _RefusedError(CLOSE_FORBIDDEN) from None
    except auth.AuthenticationError:
        raise _RefusedError(CLOSE_UNAUTHORIZED) from None
    if not process.followers.has_room_for(principal):
        raise _RefusedError(CLOSE_TOO_MANY)
    url = scope["url_route"]["kwargs"]
    return ClientConnection(
        principal=principal,
        transport="websocket",
        reader=process,
        groups=process.groups,
        defaults=Defaults(
            agent=url.get("agent") or handshake.headers.get("x-agent-id"),
            chat=url.get("chat_id") or handshake.headers.get("x-chat-id"),
            payment_token=handshake.payment_token or None,
        ),
    )


class UampSocket:
    """An accepted socket.

    The ASGI task of the socket opens, reads and closes it; the pump is a task of the process.
    """

    def __init__(self, connection: ClientConnection, send: Send) -> None:
        self._connection = connection
        self._send = send
        self._process = registry.current()
        self._pump: asyncio.Task[None] | None = None
        self._pace = Pace(
            per_minute=settings.UAMP_EVENTS_PER_MINUTE,
            burst=settings.UAMP_EVENTS_BURST,
            left=settings.UAMP_EVENTS_BURST,
            at=time.monotonic(),
        )
        connection.release = self._release

    async def open(self) -> None:
        """Send from now on, and let co-members know that the person is online."""
        connection, process = self._connection, self._process
        process.followers.add(connection)
        process.connections.add(connection)
        self._pump = process.spawn(self._send_frames(), name="pump")
        try:
            connection.presence_id = await presence.arrive(connection.principal, process=process.id)
        except (DatabaseError, InterfaceError):
            # Who is online is less than the socket itself.
            name = connection.principal.key
            logger.warning("the presence of %s was not published", name, exc_info=True)

    async def read(self, receive: Receive) -> None:
        """Take frames until the socket is closed.

        A client that sends too fast is read more slowly, not buffered.
        """
        while (message := await receive())["type"] == "websocket.receive":
            if pause := self._pace.wait(time.monotonic()):
                await asyncio.sleep(pause)
            await self._connection.outgoing.wait_for_room()
            text = message.get("text")
            await table.receive(self._connection, message["bytes"] if text is None else text)
        logger.debug("socket closed with %s", message.get("code"))

    async def close(self) -> None:
        """Release the sessions; they can be resumed, and their responses go on."""
        connection, process = self._connection, self._process
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.wait([self._pump])
        held = connection.session_ids
        for session_id in held:
            connection.detach(session_id)
        process.followers.discard(connection)
        process.connections.discard(connection)
        await process.followers.release_sessions(held, held_by=connection.held_by)
        try:
            await connection.leave_groups()
        finally:
            if connection.presence_id is not None:
                await presence.leave(connection.principal, connection.presence_id)

    async def _send_frames(self) -> None:
        outgoing = self._connection.outgoing
        try:
            while (batch := await outgoing.batch()) is not None:
                for frame in batch:
                    # A client that stopped reading is disconnected below (UAMP_STALL_SECONDS):
                    # what it missed it can resume.
                    await self._send({"type": "websocket.send", "text": frame.text})
            await self._send({"type": "websocket.close", "code": outgoing.closed_with})
        except Exception:
            # The socket may have gone in the middle of a send.
            logger.debug("the socket went while frames were sent", exc_info=True)
            with contextlib.suppress(Exception):
                await self._send({"type": "websocket.close", "code": CLOSE_UNRESPONSIVE})
        finally:
            outgoing.abandon()

    def _release(self, session_id: str) -> None:
        held_by = self._connection.held_by
        released = self._process.followers.release_sessions([session_id], held_by=held_by)
        self._process.spawn(released, name="release")
