"""The beginning and the end of a server process.

`drain` is for the time in which sockets and listeners are still open, `shutdown` for after that.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from typing import Final

from django.conf import settings

from agents_app.providers.clients import close_providers
from agents_app.remote.addresses import close_remotes
from sessions_app import database
from sessions_app.connection.client_connection import CLOSE_RESTART
from sessions_app.process import periodic, recovery, registry
from sessions_app.process.registry import Process
from sessions_app.turn import delegation, mentions, queued_turns

logger = logging.getLogger(__name__)

COLLECTOR_THRESHOLDS: Final = (10_000, 20, 50)
# How long connections may take to send their queued frames.
PART_SECONDS: Final = 2.0
LOOK_SECONDS: Final = 0.05


async def startup() -> None:
    """Start the process: its first sweep finds what an earlier process left behind."""
    calm_collector()
    start()


def start() -> Process:
    """Return the process of the running loop; the first call makes it and starts its periodic work.

    A server without the lifespan protocol calls it with each connection.
    """
    process = registry.known()
    if process is None:
        process = Process(
            delegate=delegation.delegate,
            ask_mentioned=mentions.ask_mentioned,
            start_queued=queued_turns.start_due,
            take_given=recovery.take_given,
        )
        registry.remember(process)
        process.spawn(process.signals.listen(), name="listen")
        periodic.start(process)
    return process


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
    process = registry.known()
    return process is None or not process.draining


async def drain() -> None:
    """Take no more turns, let answers finish for a grace time, and close the connections with 1012.

    Answers that have not finished are given back, also where the wait for them is cancelled.
    """
    process = registry.known()
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
    """End the process, after its connections; it is drained first where it was not yet."""
    process = registry.known()
    if process is None:
        return
    if not process.draining:
        await drain()
    await process.connected.close()
    await process.stop()
    await close_providers()
    await close_remotes()
    registry.forget()
    try:
        await asyncio.to_thread(database.close_connections)
    except TimeoutError:
        logger.exception("the process stops all the same")


async def _part_with_daemons(process: Process) -> None:
    """Have idle daemons connect elsewhere now, and the others when their answers have ended."""
    try:
        await process.connected.begin_closing()
    except Exception:
        # Other processes may give this one responses until its lease ends; it claims none.
        logger.exception("other processes may take the daemons of this one for open")
    for connection in list(process.connections):
        link = connection.agent_socket
        if link is not None and link.daemons and not link.is_busy and not connection.sessions:
            connection.close(CLOSE_RESTART)


async def _finish(process: Process) -> None:
    deadline = time.monotonic() + settings.UAMP_GRACE_SECONDS
    while time.monotonic() < deadline:
        # No answer that only waits for a person, a payment or a worker holds the process up: its
        # row is continued in another one.
        if all(run.only_waits for run in process.runs.values()):
            return
        await asyncio.sleep(LOOK_SECONDS)


async def _give_back(process: Process) -> None:
    runs = list(process.runs.values())
    if runs:
        logger.info("giving %d responses back", len(runs))
        await asyncio.gather(*(run.park() for run in runs))


async def _part(process: Process) -> None:
    """Close sockets and streams, after their queued frames."""
    for connection in list(process.connections):
        connection.close(CLOSE_RESTART)
    deadline = time.monotonic() + PART_SECONDS
    while time.monotonic() < deadline:
        if all(connection.has_ended for connection in list(process.connections)):
            return
        await asyncio.sleep(LOOK_SECONDS)
