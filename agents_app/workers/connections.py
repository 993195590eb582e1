"""Threads that release their database connections, which they may not need again."""

from __future__ import annotations

import asyncio
import contextvars
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from django.db import connections

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

P = ParamSpec("P")
T = TypeVar("T")


def release() -> None:
    """Release this thread's connections, unless they are persistent or in a transaction.

    Django's `close_old_connections` also closes connections in a transaction, which aborts it.
    """
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()


class ReleasingThreads(ThreadPoolExecutor):
    """Threads that release their database connections after each job.

    They are those of an event loop, for instance: Django renders the pages of errors on them, which
    read the name of the site. Otherwise each thread would keep its connection until the process
    ends, and there are more of them on a large machine than connections in the pool.

    Requests to other servers have threads of their own (`run`), as they may take long, while the
    requests of all clients need those of the loop. The interpreter waits for running jobs at its
    end; jobs that wait are dropped with the tasks that wait for them.
    """

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Schedule a job."""
        return super().submit(_releasing, partial(function, *args, **kwargs))

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function on one of the threads, as `asyncio.to_thread` does on the loop's."""
        job = partial(contextvars.copy_context().run, partial(function, *args, **kwargs))
        return await asyncio.get_running_loop().run_in_executor(self, job)


def _releasing(job: Callable[[], T]) -> T:
    try:
        return job()
    finally:
        release()
