"""A running server in a process of its own, and a socket to it."""

import base64
import os
import signal
import socket
import subprocess
import sys
import threading
from queue import Empty, Queue

from tests.programs import Program
from tests.threads import join_threads

MIB = 1024 * 1024


class Served:
    """A running server of `daphne_application` and the lines that it prints."""

    def __init__(self, stall: float, drain: float, server: str) -> None:
        module = f"tests.uamp_project.servers.{server}_application"
        self.process = Program(
            *(sys.executable, "-m", module, str(stall), str(drain)), stdout=subprocess.PIPE
        )
        self._lines: Queue[str] = Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self.port = int(self.line("port").split()[1])
        except Empty:
            self.end()
            raise

    def line(self, start: str) -> str:
        """Wait for the next line that begins so; those before it are dropped."""
        while True:
            line = self._lines.get(timeout=90)
            if line.startswith(start):
                return line

    def last(self, start: str) -> str:
        """Return the last line that begins so, when no new line came for a second."""
        latest = ""
        while True:
            try:
                line = self._lines.get(timeout=1)
            except Empty:
                return latest
            if line.startswith(start):
                latest = line

    def end(self) -> None:
        """Kill it, if it still runs."""
        self.process.end(signal.SIGKILL)
        join_threads([self._reader])
        assert self.process.stdout
        self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._lines.put(line.strip())


def open_raw(port: int, path: str) -> socket.socket:
    """Shake hands for a socket that only does what the test says; a small receive buffer."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    raw.settimeout(20)
    raw.connect(("127.0.0.1", port))
    key = base64.b64encode(os.urandom(16)).decode()
    raw.sendall(
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    return raw
