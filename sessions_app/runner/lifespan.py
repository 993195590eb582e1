"""The beginning and the end of a server process."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from typing import Final

from django.conf import settings

from agents_app.providers import close_providers
from sessions_app import database
from sessions_app.runner import process as processes

logger = logging.getLogger(__name__)

COLLECTOR_THRESHOLDS: Final = (10_000, 20, 50)


async def startup() -> None:
    """Set the process going: the first sweep finds what an earlier process left behind."""
    calm_collector()
    processes.current()


def calm_collector() -> None:
    """Let the garbage collector stop the event loop less often, and for less.

    With a thousand answers under way a full collection takes a quarter of a second, and by default
    there is one every few seconds; what was loaded at the start is not looked at again at all.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)


def is_ready() -> bool:
    """Return whether this process takes new work."""
    process = processes.known()
    return process is None or not process.draining


async def drain() -> None:
    """Take no more work, let responses finish for a grace time, then give the rest back."""
    process = processes.known()
    if process is None:
        return
    process.draining = True
    deadline = time.monotonic() + settings.UAMP_GRACE_SECONDS
    while process.runs and time.monotonic() < deadline:
        # A wait for a person or a worker is not worth waiting for: its row goes on.
        busy = [run for run in process.runs.values() if not run.broker.waiting]
        if not busy:
            break
        await asyncio.sleep(0.05)
    runs = list(process.runs.values())
    if runs:
        logger.info("giving %d responses back", len(runs))
        await asyncio.gather(*(run.park() for run in runs))
    await process.stop()
    await close_providers()
    processes.forget()
    await asyncio.to_thread(database.close_connections)
