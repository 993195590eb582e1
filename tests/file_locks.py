"""File locks between processes, with a time limit."""

import fcntl
import time
from typing import TextIO

LOCK_SECONDS = 280.0
"""Less than a test may take."""


def lock_file(file: TextIO, seconds: float = LOCK_SECONDS) -> None:
    """Lock a file until it is closed; raises BlockingIOError if another process keeps it."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return
