"""Frames over a WebSocket (UAMP §13.1, docs/transports.md)."""

from typing import Self

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidStatus,
    InvalidURI,
)

from uamp.client.errors import ClientError, InvalidRequestError, UnauthorizedError
from uamp.client.transports.frames import TransportClosed, UpgradeRefused

_LARGEST_FRAME = 16 * 2**20
_PING_SECONDS = 20
_CLOSE_SECONDS = 2
_BAD_FRAMES, _TOO_LARGE, _VERSION, _SIGNED_OUT = 1008, 1009, 4426, 4401


class _DirectConnect(connect):
    """Connects without following redirects, as the HTTP transport does.

    Another server would receive the frames of the session, with its tokens.
    """

    def process_redirect(self, exc: Exception) -> Exception | str:
        """Return the refusal unchanged."""
        return exc


class WebSocketTransport:
    """A WebSocket; a connection that does not answer pings counts as lost."""

    is_ordered = True

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    @classmethod
    async def open(cls, address: str, headers: dict[str, str], *, seconds: float) -> Self:
        """Connect to the http or https address of `/uamp`.

        Raises UpgradeRefused, or OSError or TimeoutError if the server cannot be reached.
        """
        url = "ws" + address.removeprefix("http")
        try:
            socket = await _DirectConnect(
                url,
                additional_headers=headers,
                open_timeout=seconds,
                close_timeout=_CLOSE_SECONDS,
                ping_interval=_PING_SECONDS,
                ping_timeout=_PING_SECONDS,
                max_size=_LARGEST_FRAME,
            )
        except InvalidStatus as error:
            raise UpgradeRefused(error.response.status_code) from None
        except InvalidURI as error:
            raise InvalidRequestError(str(error), code="invalid_address") from None
        except InvalidHandshake as error:
            raise ConnectionError(str(error)) from error
        return cls(socket)

    async def send(self, frame: str, session_id: str | None) -> None:
        """Send a frame. Raises TransportClosed."""
        del session_id  # every frame names its own
        try:
            await self._socket.send(frame)
        except ConnectionClosed as closed:
            raise _transport_closed(closed) from None

    async def receive(self) -> str:
        """Return the next frame. Raises TransportClosed."""
        try:
            frame = await self._socket.recv()
        except ConnectionClosed as closed:
            raise _transport_closed(closed) from None
        return frame if isinstance(frame, str) else frame.decode()

    async def close(self) -> None:
        """Close the WebSocket within two seconds."""
        await self._socket.close()


def _transport_closed(closed: ConnectionClosed) -> TransportClosed:
    code, reason = (closed.rcvd.code, closed.rcvd.reason) if closed.rcvd else (1006, "")
    error: ClientError | None = None
    if code == _SIGNED_OUT:
        error = UnauthorizedError(
            "The key was revoked, or its person was deactivated.", code="unauthorized"
        )
    elif code in {_BAD_FRAMES, _TOO_LARGE, _VERSION}:
        codes = {_TOO_LARGE: "frame_too_large", _VERSION: "version_mismatch"}
        message = reason or f"The server closed the connection with code {code}."
        error = InvalidRequestError(message, code=codes.get(code, "too_many_bad_frames"))
    return TransportClosed(f"the socket was closed with {code} {reason}".rstrip(), error)
