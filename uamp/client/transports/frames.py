"""The interface of the client's transports: sending and receiving frames, and closing."""

from typing import Protocol

from uamp.client.errors import ClientError


class TransportClosed(Exception):
    """The transport is closed; ``error`` is set if opening another would be pointless."""

    def __init__(self, message: str, error: ClientError | None = None) -> None:
        super().__init__(message)
        self.error = error


class UpgradeRefused(Exception):
    """The server, or a proxy in front of it, answered the handshake with an HTTP ``status``."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the handshake was answered with status {status}")
        self.status = status


class FrameTransport(Protocol):
    """An open transport; one task sends, another receives."""

    is_ordered: bool
    """Whether the answer to a frame arrives after everything that the server sent before it."""

    async def send(self, frame: str, session_id: str | None) -> None:
        """Send a frame, in a session if one is given. Raises TransportClosed."""

    async def receive(self) -> str:
        """Return the next frame. Raises TransportClosed."""

    async def close(self) -> None:
        """Close the transport; closing it twice does nothing."""
