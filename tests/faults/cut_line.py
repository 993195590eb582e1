"""A TCP proxy whose connections can be cut, before any server."""

from __future__ import annotations

import contextlib
import socket
import threading


class CutLine:
    """Listens on a free port of 127.0.0.1 as `port`, and passes on what comes, both ways."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._is_cut = False
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> int:
        """End all connections, with what is under way on them; return how many there were."""
        with self._lock:
            ends, self._open = list(self._open), set()
        for end in ends:
            _shut(end)
        return len(ends) // 2

    def hold(self) -> None:
        """End all connections, and those that come."""
        self._is_cut = True
        self.cut()

    def mend(self) -> None:
        """Let connections through again."""
        self._is_cut = False

    def close(self) -> None:
        """Accept no more."""
        self.hold()
        # A socket that is accepted on is woken by its shutdown alone.
        _shut(self._listener)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self._is_cut:
                    client.close()
                    continue
                try:
                    server = socket.create_connection(self._target)
                except OSError:
                    client.close()
                    continue
                with self._lock:
                    self._open |= {client, server}
                threading.Thread(target=self._pair, args=(client, server), daemon=True).start()

    def _pair(self, client: socket.socket, server: socket.socket) -> None:
        """Pass on what comes in both directions, until both have ended."""
        with client, server:
            back = threading.Thread(target=self._pump, args=(server, client), daemon=True)
            back.start()
            self._pump(client, server)
            back.join(60)

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with self._lock:
            self._open -= {source, target}
        _shut(source)
        _shut(target)


def _shut(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
