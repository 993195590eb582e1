"""A proxy before PostgreSQL that can lose the answers to some COMMITs.

The client's COMMIT goes through; what the server says to it does not: the connection is closed.
The client cannot know whether its transaction was kept.
"""

from __future__ import annotations

import multiprocessing
import random
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class CommitProxy:
    """Listens on a free port of 127.0.0.1 as `port`, in a process of its own."""

    def __init__(self, host: str, port: int, chance: float) -> None:
        self.target = (host, port)
        self.chance = chance
        self._random = random.Random(1)  # noqa: S311 not for secrets
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        processes = multiprocessing.get_context("fork")
        self._cut = processes.Value("i", 0)
        self._loses = processes.Value("b", 0)
        self._process = processes.Process(target=self._accept, daemon=True)
        self._process.start()

    @property
    def cut(self) -> int:
        """The number of answers that were lost."""
        return int(self._cut.value)

    @contextmanager
    def losing(self) -> Iterator[None]:
        """Lose replies until the block ends."""
        self._loses.value = 1
        try:
            yield
        finally:
            self._loses.value = 0

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join(60)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            try:
                server = socket.create_connection(self.target)
            except OSError:
                client.close()
                continue
            lost = threading.Event()
            for source, target, up in ((client, server, True), (server, client, False)):
                threading.Thread(
                    target=self._pump, args=(source, target, lost), kwargs={"up": up}, daemon=True
                ).start()

    def _pump(
        self, source: socket.socket, target: socket.socket, lost: threading.Event, *, up: bool
    ) -> None:
        try:
            while data := source.recv(65536):
                is_commit = up and self._loses.value and b"COMMIT" in data
                if is_commit and self._random.random() < self.chance:
                    lost.set()
                elif not up and lost.is_set():
                    # The server has answered, so it has committed.
                    with self._cut.get_lock():
                        self._cut.value += 1
                    break
                target.sendall(data)
        except OSError:
            pass
        finally:
            for end in (source, target):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue
