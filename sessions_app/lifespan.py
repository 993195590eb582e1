"""Start-up and shutdown of a server process.

`drain` runs while sockets and listeners are still open, `shutdown` after they have closed.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from typing import Final

from django.conf import settings
from django.db import DatabaseError

from agents_app.providers.clients import close_providers
from agents_app.remote.addresses import close_remotes
from agents_app.workers.connections import ReleasingThreads
from sessions_app import database
from sessions_app.connection.client_connection import CLOSE_RESTART
from sessions_app.process import beats, periodic, recovery, registry
from sessions_app.process.registry import Process
from sessions_app.turn import delegation, mentions, queued_turns

logger = logging.getLogger(__name__)

COLLECTOR_THRESHOLDS: Final = (10_000, 20, 50)
# Time limit for connections to send their queued frames.
PART_SECONDS: Final = 2.0
LOOK_SECONDS: Final = 0.05


async def startup() -> None:
    """Start the process; its first sweep recovers work that earlier processes left behind."""
    calm_collector()
    start()


def start() -> Process:
    """Return the running loop's process; the first call creates it and starts its periodic work.

    Servers without the lifespan protocol call it for every connection.
    """
    process = registry.current_or_none()
    if process is None:
        asyncio.get_running_loop().set_default_executor(ReleasingThreads())
        process = Process(
            delegate=delegation.delegate,
            ask_mentioned=mentions.ask_mentioned,
            start_queued=queued_turns.start_due,
            take_handed_over=recovery.take_handed_over,
        )
        registry.remember(process)
        process.heartbeat.start()
        process.spawn(process.signals.listen(), name="listen")
        periodic.start(process)
    return process


def calm_collector() -> None:
    """Make garbage collection pause the event loop less often and more briefly.

    With a thousand answers under way, a full collection takes a quarter of a second and by default
    runs every few seconds. Freezing exempts everything loaded at start-up.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)


def is_ready() -> bool:
    """Return whether this process accepts new work."""
    process = registry.current_or_none()
    return process is None or not process.draining


async def drain() -> None:
    """Refuse new turns, give answers a grace time to finish, then close connections with 1012.

    Unfinished answers are handed back, even if the wait for them is cancelled.
    """
    process = registry.current_or_none()
    if process is None:
        return
    process.draining = True
    try:
        await _part_with_daemons(process)
        await _finish(process)
    finally:
        try:
            await _give_back(process)
        finally:
            await _part(process)


async def shutdown() -> None:
    """Stop the process after its connections have closed; drain it first if necessary."""
    process = registry.current_or_none()
    if process is None:
        return
    if not process.draining:
        await drain()
    await asyncio.to_thread(process.heartbeat.stop)
    await process.connected.close()
    await process.stop()
    await _say_goodbye(process.id)
    await close_providers()
    await close_remotes()
    registry.forget()
    try:
        await asyncio.to_thread(database.close_connections)
    except TimeoutError:
        logger.exception("database connections did not close in time; stopping anyway")


async def _say_goodbye(name: str) -> None:
    """Delete the row by which operators see that the process is alive."""
    try:
        await database.run(beats.stop, name)
    except DatabaseError:
        logger.warning("could not delete the heartbeat of %s", name, exc_info=True)


async def _part_with_daemons(process: Process) -> None:
    """Make idle daemons reconnect elsewhere now, and busy ones when their answers have ended."""
    try:
        await process.connected.begin_closing()
    except Exception:
        # Other processes may assign responses to this one until its lease ends; it claims none.
        logger.exception("other processes may consider this process's daemons connected")
    for connection in list(process.connections):
        link = connection.agent_socket
        if link is not None and link.daemons and not link.is_busy and not connection.sessions:
            connection.close(CLOSE_RESTART)


async def _finish(process: Process) -> None:
    deadline = time.monotonic() + settings.UAMP_GRACE_SECONDS
    while time.monotonic() < deadline:
        # Answers that are only waiting for a person, a payment or a worker do not delay shutdown:
        # another process continues them from their rows.
        if all(run.only_waits for run in process.runs.values()):
            return
        await asyncio.sleep(LOOK_SECONDS)


async def _give_back(process: Process) -> None:
    runs = list(process.runs.values())
    if runs:
        logger.info("giving %d responses back", len(runs))
        await asyncio.gather(*(run.park() for run in runs))


async def _part(process: Process) -> None:
    """Close sockets and streams once their queued frames are sent."""
    for connection in list(process.connections):
        connection.close(CLOSE_RESTART)
    deadline = time.monotonic() + PART_SECONDS
    while time.monotonic() < deadline:
        if all(connection.has_ended for connection in list(process.connections)):
            return
        await asyncio.sleep(LOOK_SECONDS)
