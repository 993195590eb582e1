"""The end of a process that has stopped serving but waits for a thread.

The interpreter waits indefinitely for the threads of every executor, and so does asyncio for its
own threads.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import threading
import time
from typing import Final

logger = logging.getLogger(__name__)

END_SECONDS: Final = 120.0


def end_within(seconds: float = END_SECONDS) -> None:
    """End this process with status 1 if it still runs then, logging the threads that block it."""

    def watch() -> None:
        time.sleep(seconds)
        names = sorted(thread.name for thread in threading.enumerate() if not thread.daemon)
        logger.critical("the process did not end within %g s: %s", seconds, ", ".join(names))
        faulthandler.dump_traceback()
        os._exit(1)

    threading.Thread(target=watch, name="end-watch", daemon=True).start()
