"""The base of the client's transports: frames out, frames in, and how it ends."""

from typing import Protocol

from uamp.client.errors import ClientError


class TransportClosed(Exception):
    """The transport carries nothing more; ``error`` is set where opening another is pointless."""

    def __init__(self, message: str, error: ClientError | None = None) -> None:
        super().__init__(message)
        self.error = error


class UpgradeRefused(Exception):
    """The server, or a proxy before it, answered the handshake with an HTTP ``status``."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the handshake was answered with status {status}")
        self.status = status


class FrameTransport(Protocol):
    """An open transport; one task sends, another one receives."""

    is_ordered: bool
    """Whether the answer to a frame comes behind all that the server sent before it."""

    async def send(self, frame: str, session_id: str | None) -> None:
        """Send a frame, of a session where it is given. Raises TransportClosed."""

    async def receive(self) -> str:
        """Return the next frame. Raises TransportClosed."""

    async def close(self) -> None:
        """Close it; a second time does nothing."""
