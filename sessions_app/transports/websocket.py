"""UAMP over WebSocket (§13.1): one event per text frame, with multiplexed sessions (§10).

Incoming frames go to `handlers.table`; queued frames are already UAMP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessions_app.access.connect_tokens import only_connects
from sessions_app.connected.agent_socket import keep_pace
from sessions_app.connection import presence
from sessions_app.handlers import table
from sessions_app.models import SessionTransport
from sessions_app.process import registry
from sessions_app.transports.socket import SocketApplication, SocketDialect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessions_app.connection.outgoing_queue import Outgoing


class UampDialect(SocketDialect):
    """UAMP itself: a frame is an event, and a person with a socket is online."""

    transport = SessionTransport.WEBSOCKET.value
    # `uamp.Connection` limits frame sizes, with UAMP's own error.
    frame_bytes = None

    async def opened(self) -> None:
        """Announce to co-members that the person is online, unless only an agent connects."""
        process_id = registry.current().id
        principal = self.connection.principal
        if only_connects(principal.rights):
            return
        self.connection.presence_id = await presence.try_to_arrive(principal, process=process_id)

    async def receive(self, frame: str | bytes) -> None:
        """Handle an event of the client, or of an agent that answers on this socket."""
        await table.receive(self.connection, frame)
        link = self.connection.agent_socket
        if link is not None and link.took:
            # Events of answers have their own rate limit.
            self.weight = 0
            await keep_pace(link)

    def encode(self, batch: Sequence[Outgoing]) -> list[str]:
        """Return the frames unchanged."""
        return [outgoing.text for outgoing in batch]

    async def closed(self) -> None:
        """Announce that the person may be offline, and end its agents' answers."""
        if self.connection.agent_socket is not None:
            self.connection.agent_socket.lose_all()
        if self.connection.presence_id is not None:
            await presence.leave(self.connection.principal, self.connection.presence_id)


application: Final = SocketApplication(UampDialect)
