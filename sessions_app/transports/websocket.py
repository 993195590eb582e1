"""UAMP over WebSocket (§13.1): one event per text frame, sessions multiplexed (§10).

The consumer passes incoming frames to `handlers.table` and sends what the connection has ready.
`dispatch` does no thread hop; whatever touches the database goes through
`database.run`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING, Any, Final

from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.db import DatabaseError, InterfaceError

from chat_app.log import fanout
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

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessions_app.process.registry import Process

logger = logging.getLogger(__name__)

CLOSE_FORBIDDEN: Final = 4403
CLOSE_TOO_MANY: Final = 4429
CLOSE_UNRESPONSIVE: Final = 1013


class UampConsumer(AsyncWebsocketConsumer):
    """One socket. The URL may name an agent or a chat for its sessions."""

    connection: ClientConnection
    process: Process

    async def dispatch(self, message: Mapping[str, Any]) -> None:
        """Call the method that the ASGI or layer message names."""
        await getattr(self, message["type"].replace(".", "_"))(message)

    # --- The socket ---

    async def websocket_connect(self, message: Mapping[str, Any]) -> None:
        """Find out who is there; refuse a foreign page and a bad token before accepting."""
        del message
        self._pump: asyncio.Task[None] | None = None
        self._groups: set[str] = set()
        process = self.process = registry.current()
        if process.draining:
            await self.close(CLOSE_RESTART)
            raise StopConsumer
        handshake = auth.Handshake.of(self.scope)
        try:
            principal = await database.run(auth.identify, handshake)
        except auth.OriginError:
            await self.close(CLOSE_FORBIDDEN)
            raise StopConsumer from None
        except auth.AuthenticationError:
            await self.close(CLOSE_UNAUTHORIZED)
            raise StopConsumer from None
        if not process.followers.has_room_for(principal):
            await self.close(CLOSE_TOO_MANY)
            raise StopConsumer
        url = self.scope["url_route"]["kwargs"]
        self.connection = ClientConnection(
            principal=principal,
            transport="websocket",
            source=process,
            origin=self.channel_name,
            follow=self._follow,
            release=self._release,
            defaults=Defaults(
                agent=url.get("agent") or handshake.headers.get("x-agent-id"),
                chat=url.get("chat_id") or handshake.headers.get("x-chat-id"),
                payment_token=handshake.payment_token or None,
            ),
        )
        self._pace = Pace(
            per_minute=settings.UAMP_EVENTS_PER_MINUTE,
            burst=settings.UAMP_EVENTS_BURST,
            left=settings.UAMP_EVENTS_BURST,
            at=time.monotonic(),
        )
        await self.accept()
        process.followers.add(self.connection)
        process.connections.add(self.connection)
        self._pump = process.spawn(self._send_frames(), name="pump")
        try:
            self.connection.presence_id = await presence.arrive(principal, process=process.id)
        except (DatabaseError, InterfaceError):
            # Who is online is less than the socket itself.
            logger.warning("nobody was told that %s is online", principal.key, exc_info=True)

    async def websocket_receive(self, message: Mapping[str, Any]) -> None:
        """Take one frame. A client that sends too fast is read more slowly, not buffered."""
        if pause := self._pace.wait(time.monotonic()):
            await asyncio.sleep(pause)
        await self.connection.room()
        text = message.get("text")
        await table.receive(self.connection, message["bytes"] if text is None else text)

    async def websocket_disconnect(self, message: Mapping[str, Any]) -> None:
        """Let go of the socket; its sessions can be resumed and its responses go on."""
        logger.debug("socket closed with %s", message.get("code"))
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.wait([self._pump])
            held = self.connection.session_ids
            for session_id in held:
                self.connection.detach(session_id)
            self.process.followers.discard(self.connection)
            self.process.connections.discard(self.connection)
            await self.process.followers.release_sessions(held, held_by=self.channel_name)
        try:
            for group in self._groups:
                await self.channel_layer.group_discard(group, self.channel_name)
        finally:
            if self._pump is not None and self.connection.presence_id is not None:
                await presence.leave(self.connection.principal, self.connection.presence_id)
        raise StopConsumer

    async def _send_frames(self) -> None:
        try:
            while (batch := await self.connection.batch()) is not None:
                for outgoing in batch:
                    # A client that stopped reading is disconnected below (UAMP_STALL_SECONDS):
                    # what it missed it can resume.
                    await self.base_send({"type": "websocket.send", "text": outgoing.text})
            await self.close(self.connection.closed_with)
        except Exception:
            # The socket may have gone in the middle of a send.
            logger.debug("the socket went while frames were sent", exc_info=True)
            with contextlib.suppress(Exception):
                await self.close(CLOSE_UNRESPONSIVE)
        finally:
            self.connection.abandon()

    def _release(self, session_id: str) -> None:
        released = self.process.followers.release_sessions([session_id], held_by=self.channel_name)
        self.process.spawn(released, name="release")

    async def _follow(self, chat_id: str) -> None:
        group = fanout.chat_group(chat_id)
        self._groups.add(group)
        async with asyncio.timeout(fanout.SEND_TIMEOUT_SECONDS):
            await self.channel_layer.group_add(group, self.channel_name)

    # --- The channel layer ---

    async def chat_event(self, message: dict[str, Any]) -> None:
        """Take a message of a chat's group."""
        self.connection.take_layer_message(message)

    chat_delta = chat_event
    chat_text = chat_event
    chat_signal = chat_event
