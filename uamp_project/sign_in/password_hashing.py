"""Password hashing on few threads at once, none of which holds a database connection.

A hash deliberately takes a large part of a second of CPU time. Unbounded, concurrent requests would
compute hashes on all cores, and every other request would wait.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from django.contrib.auth.hashers import PBKDF2PasswordHasher

from agents_app.workers import connections

if TYPE_CHECKING:
    from collections.abc import Iterator

HASHED_AT_ONCE: Final = 2
"""How many passwords one process hashes at once."""
WAITING_MAX: Final = 16
"""How many passwords may wait for a thread; one more is refused."""
WAIT_SECONDS: Final = 10.0
"""The longest wait for a thread."""

_present = threading.BoundedSemaphore(HASHED_AT_ONCE + WAITING_MAX)
_hashing = threading.BoundedSemaphore(HASHED_AT_ONCE)


class TooManyPasswords(Exception):
    """HASHED_AT_ONCE + WAITING_MAX passwords are being hashed or waiting in this process."""


class BoundedHasher(PBKDF2PasswordHasher):
    """Django's default hasher, which waits for its turn; its hashes are the same."""

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        """Return the hash; raises TooManyPasswords."""
        with _turn():
            return super().encode(password, salt, iterations)


@contextmanager
def _turn() -> Iterator[None]:
    # Others may need the connection meanwhile; one in a transaction is kept.
    connections.release()
    if not _present.acquire(blocking=False):
        raise TooManyPasswords
    try:
        if not _hashing.acquire(timeout=WAIT_SECONDS):
            raise TooManyPasswords
        try:
            yield
        finally:
            _hashing.release()
    finally:
        _present.release()
