"""The bounded thread pool through which sockets and runs use the database.

Channels would run all sockets of a process on one shared thread, where a slow query would block
every other socket.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar
from weakref import WeakValueDictionary

from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections, connections

from agents_app.workers.connections import ReleasingThreads
from telemetry import metrics

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

RETRY_SECONDS: Final = (0.1, 0.4)
"""Pauses before retrying a call that lost its connection."""
CLOSE_SECONDS: Final = 30.0
"""How long the threads may take to end. Statements and lock waits have shorter limits."""

LONG_THREADS: Final = 4
"""How many long calls may run at once."""

long_threads: Final = ReleasingThreads(LONG_THREADS, thread_name_prefix="long")
_long_turns: Final = WeakValueDictionary[tuple[int, str], asyncio.Lock]()
_lock = threading.Lock()
_executor: ThreadPoolExecutor | None = None


def executor() -> ThreadPoolExecutor:
    """Return the process's database threads, creating them on first use."""
    global _executor  # noqa: PLW0603 one executor per process is the point
    with _lock:
        if _executor is None:
            _executor = ThreadPoolExecutor(settings.DB_THREADS, thread_name_prefix="database")
        return _executor


async def run(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a synchronous database function on a database thread and return its result.

    It runs in a copy of the caller's context, so that its log lines and spans belong to the caller.
    """
    asked_at = time.monotonic()

    def job() -> T:
        metrics.DATABASE_WAIT_SECONDS.observe(time.monotonic() - asked_at)
        return scoped(function, *args, **kwargs)

    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(executor(), context.run, job)


async def run_long(asker: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do the same as `run` for a function that may take a minute: it stores or measures files.

    It has threads of its own, so that all other calls need not wait for it. Those of one asker run
    one after another, so that none takes all threads.
    """
    key = id(asyncio.get_running_loop()), asker
    async with _long_turns.setdefault(key, asyncio.Lock()):
        return await long_threads.run(partial(scoped, function, *args, **kwargs))


async def insist(call: Callable[[], Awaitable[T]]) -> T:
    """Await a database call, and retry it if its connection is lost.

    Only for calls that are safe to repeat, such as the write of a turn, which recognises itself.
    Otherwise the client would receive `unavailable` for a turn that was written, and send it again.
    """
    for pause in RETRY_SECONDS:
        try:
            return await call()
        except (OperationalError, InterfaceError):
            logger.warning("the database did not answer; asking again", exc_info=True)
            await asyncio.sleep(pause)
    return await call()


def scoped(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a database function with a usable connection, and close expired ones."""
    close_old_connections()
    try:
        return function(*args, **kwargs)
    finally:
        close_old_connections()


def on_persistent_connection(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a database function on a connection that this thread keeps open between calls.

    If the call raises, the connection may be broken and is replaced if necessary. For threads that
    only write: taking a connection from the pool costs as much as a small statement.
    """
    try:
        return function(*args, **kwargs)
    except BaseException:
        close_old_connections()
        raise


def close_connections() -> None:
    """Stop the threads and close their connections (at shutdown and between tests).

    Raises TimeoutError with the names of the threads still running after CLOSE_SECONDS.
    """
    global _executor
    with _lock:
        ended, _executor = _executor, None
    if ended is None:
        return
    deadline = time.monotonic() + CLOSE_SECONDS
    threads = list(ended._threads)  # noqa: SLF001 every thread must close its own connections
    barrier = threading.Barrier(len(threads)) if threads else None

    def close() -> None:
        connections.close_all()
        if barrier is not None:
            with suppress(threading.BrokenBarrierError):
                barrier.wait(CLOSE_SECONDS / 2)

    closing = [ended.submit(close) for _ in threads]
    ended.shutdown(wait=False)
    threads = list(ended._threads)  # noqa: SLF001 a busy pool may have added a thread
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    if running := sorted(thread.name for thread in threads if thread.is_alive()):
        raise TimeoutError(
            f"database threads did not end within {CLOSE_SECONDS:g} s: {', '.join(running)}"
        )
    for future in closing:
        future.result()
