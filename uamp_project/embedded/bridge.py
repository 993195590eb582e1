"""A one-way bridge: other processes send layer messages to the web process over a unix socket.

A frame is a big-endian uint32 length followed by that many bytes of msgpack: `[kind, name,
message]`, where kind is `group` or `channel`. The socket has no authentication, but its folder is
private (0700). A frame that no hub accepts is dropped and counted; its receivers find the same in
the database up to two seconds later.
"""

import hashlib
import logging
import os
import socket
import struct
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

logger = logging.getLogger(__name__)

Kind = Literal["group", "channel"]
Message = dict[str, Any]
Deliver = Callable[[Kind, str, Message], None]

FRAME_BYTES_MAX = 8 * 1024 * 1024
SEND_TIMEOUT_SECONDS = 0.5
CLOSE_SECONDS = 5.0
# The kernel's limit is 108 on Linux and 104 on macOS, including the terminating zero.
ADDRESS_BYTES_MAX = 100

_HEADER = struct.Struct(">I")
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(tuple[Kind, str, Message])


class FrameError(Exception):
    """The received bytes are not a frame."""


class HubIsRunningError(RuntimeError):
    """Another live process already listens on this socket."""


def socket_address(path: Path) -> str:
    """Return the address to bind or connect for `path`, creating its private folder (0700).

    A path that is too long for the kernel is replaced by one in the temporary directory, which both
    sides derive from it. Raises PermissionError if that folder belongs to another user.
    """
    if len(os.fsencode(path)) > ADDRESS_BYTES_MAX:
        digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
        path = Path(tempfile.gettempdir()) / f"uamp-{os.getuid()}-{digest}" / "layer.sock"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.parent.stat().st_uid != os.getuid():
        raise PermissionError(f"{path.parent} belongs to another user")
    path.parent.chmod(0o700)
    return str(path)


def _payload_size(header: bytes) -> int:
    if len(header) < _HEADER.size:
        raise FrameError("the connection ended within a header")
    (size,) = _HEADER.unpack(header)
    if size > FRAME_BYTES_MAX:
        raise FrameError(f"a frame of {size} bytes")
    return int(size)


class Hub:
    """Listens on the socket and calls `deliver` for every frame.

    One thread accepts connections, and a thread per connection calls `deliver`, so several may call
    it at once. Any other thread may call `close`, once.
    """

    def __init__(self, path: Path, deliver: Deliver) -> None:
        self._deliver = deliver
        self._address = socket_address(path)
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._listener = self._listen()
        self._thread = threading.Thread(target=self._accept, name="layer-hub", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening, close every connection and remove the socket file."""
        Path(self._address).unlink(missing_ok=True)
        # shutdown wakes the accepting thread, which close alone would leave blocked.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(CLOSE_SECONDS)
        if self._thread.is_alive():
            logger.error("the layer hub did not end within %g s", CLOSE_SECONDS)
        self._listener.close()
        with self._lock:
            for connection in self._connections:
                with suppress(OSError):  # its peer may be gone
                    connection.shutdown(socket.SHUT_RDWR)

    def _listen(self) -> socket.socket:
        if self._answers():
            raise HubIsRunningError(f"another server already listens on {self._address}")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            Path(self._address).unlink(missing_ok=True)
            listener.bind(self._address)
            listener.listen()
        except BaseException:
            listener.close()
            raise
        return listener

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(SEND_TIMEOUT_SECONDS)
            try:
                probe.connect(self._address)
            except (FileNotFoundError, ConnectionRefusedError):
                return False
            return True

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # closed
            with self._lock:
                self._connections.add(connection)
            threading.Thread(
                target=self._serve, args=(connection,), name="layer-spoke", daemon=True
            ).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection.makefile("rb") as stream:
                while header := stream.read(_HEADER.size):
                    payload = stream.read(_payload_size(header))
                    self._deliver(*_DECODER.decode(payload))
        except (OSError, FrameError, msgspec.MsgspecError) as error:
            # A spoke died within a frame, or the client is not a spoke: there is nothing to answer.
            logger.warning("layer hub closed a connection: %r", error)
        finally:
            # Under the lock, so that close() never sees a connection that is already closed.
            with self._lock:
                self._connections.discard(connection)
                connection.close()


class Spoke:
    """Sends frames to the hub; thread-safe. `dropped` counts those that no hub accepted."""

    def __init__(self, path: Path) -> None:
        self._address = socket_address(path)
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self.dropped = 0

    def send(self, kind: Kind, name: str, message: Message) -> bool:
        """Send one frame, reconnecting if the connection broke; return whether it was sent.

        Blocks for at most about a second. Raises ValueError for a frame above FRAME_BYTES_MAX.
        """
        payload = _ENCODER.encode((kind, name, message))
        if len(payload) > FRAME_BYTES_MAX:
            raise ValueError(f"a layer message of {len(payload)} bytes is too large")
        frame = _HEADER.pack(len(payload)) + payload
        with self._lock:
            for _ in range(2):
                try:
                    self._connected().sendall(frame)
                except OSError:
                    self._disconnect()
                else:
                    return True
            self.dropped += 1
            if self.dropped == 1:
                logger.warning("no hub listens on %s; layer messages are dropped", self._address)
            return False

    def close(self) -> None:
        """Close the connection; a later send reconnects."""
        with self._lock:
            self._disconnect()

    def _connected(self) -> socket.socket:
        if self._socket is None:
            fresh = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            fresh.settimeout(SEND_TIMEOUT_SECONDS)
            try:
                fresh.connect(self._address)
            except OSError:
                fresh.close()
                raise
            self._socket = fresh
        return self._socket

    def _disconnect(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
