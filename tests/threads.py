"""Threads started by tests: everything that waits for one has a limit."""

from __future__ import annotations

import asyncio
import faulthandler
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import pytest
from django.db import connection, connections

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future
    from threading import Thread

P = ParamSpec("P")
T = TypeVar("T")

JOIN_SECONDS = 120.0


def join_threads(threads: Iterable[Thread], seconds: float = JOIN_SECONDS) -> None:
    """Wait until threads have ended; otherwise fail and print their stacks.

    `Thread.join(seconds)` returns either way.
    """
    deadline = time.monotonic() + seconds
    running = []
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            running.append(thread.name)
    if running:
        faulthandler.dump_traceback()
        pytest.fail(f"still running after {seconds:g} s: {', '.join(running)}")


def waits_for_a_lock() -> bool:
    """Return whether a connection to this PostgreSQL database waits for a lock."""
    with connection.cursor() as cursor:
        # A transaction would otherwise see the connections of its first look.
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return bool(cursor.fetchone()[0])


class _ThreadPool(ThreadPoolExecutor):
    """A pool whose jobs leave no database connection behind.

    One that a thread has at its end is never returned to the pool of PostgreSQL's connections.
    """

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        return super().submit(_closing, partial(function, *args, **kwargs))


def _closing(job: Callable[[], T]) -> T:
    try:
        return job()
    finally:
        connections.close_all()


@contextmanager
def thread_pool(workers: int, seconds: float = JOIN_SECONDS) -> Iterator[ThreadPoolExecutor]:
    """Run jobs on threads for the length of a block; fail if they do not end after it."""
    pool = _ThreadPool(workers, thread_name_prefix="pool")
    try:
        yield pool
    finally:
        pool.shutdown(wait=False)
        join_threads(pool._threads, seconds)


def close_connections_of_loops() -> None:
    """Make `asyncio.to_thread` of a test leave no database connection behind.

    A loop of the product has threads of its own (`connections.ReleasingThreads`).
    """
    run_in_executor = asyncio.BaseEventLoop.run_in_executor

    def run(self: Any, executor: Any, function: Callable[..., Any], *args: Any) -> Any:
        if executor is None and self._default_executor is None:
            self.set_default_executor(_ThreadPool())
        return run_in_executor(self, executor, function, *args)

    asyncio.BaseEventLoop.run_in_executor = run  # type: ignore[assignment, method-assign]
