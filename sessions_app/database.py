"""The bounded executor on which sockets and runs reach the database.

Channels would run every socket of a process on one shared thread; one slow query would stop all.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections, connections

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

RETRY_SECONDS: Final = (0.1, 0.4)
"""The pauses before a call is repeated that lost its connection."""

_lock = threading.Lock()
_executor: ThreadPoolExecutor | None = None


def executor() -> ThreadPoolExecutor:
    """Return the process's database threads, made on first use."""
    global _executor  # noqa: PLW0603 one executor per process is the point
    with _lock:
        if _executor is None:
            _executor = ThreadPoolExecutor(settings.DB_THREADS, thread_name_prefix="database")
        return _executor


async def run(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a synchronous database function on a database thread and return what it returns."""

    def job() -> T:
        return scoped(function, *args, **kwargs)

    return await asyncio.get_running_loop().run_in_executor(executor(), job)


async def insist(call: Callable[[], Awaitable[T]]) -> T:
    """Await a call to the database; repeat it where it lost its connection.

    For calls that may be repeated, such as the write of a turn, which recognises itself: its client
    would receive `unavailable` for a turn that is written, and send it once more.
    """
    for pause in RETRY_SECONDS:
        try:
            return await call()
        except (OperationalError, InterfaceError):
            logger.warning("the database did not answer; asking again", exc_info=True)
            await asyncio.sleep(pause)
    return await call()


def scoped(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a database function with a usable connection, and close an aged one."""
    close_old_connections()
    try:
        return function(*args, **kwargs)
    finally:
        close_old_connections()


def kept(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a database function on the connection that this thread keeps between calls.

    A call that raises may have broken it: the next one gets another. For a thread that only writes,
    since taking a connection from the pool costs as much as a small statement.
    """
    try:
        return function(*args, **kwargs)
    except BaseException:
        close_old_connections()
        raise


def close_connections() -> None:
    """End the threads and their connections (at shutdown, and between tests)."""
    global _executor
    with _lock:
        ended, _executor = _executor, None
    if ended is not None:
        workers = len(ended._threads)  # noqa: SLF001 every thread must close its own connections
        barrier = threading.Barrier(workers) if workers else None

        def close() -> None:
            connections.close_all()
            if barrier is not None:
                barrier.wait(timeout=10)

        for future in [ended.submit(close) for _ in range(workers)]:
            future.result()
        ended.shutdown(wait=True)
