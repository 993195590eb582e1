"""Release of database connections by threads that may not need them again."""

from __future__ import annotations

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
    """The threads of an event loop, which release their database connections after each job.

    Django renders the pages of errors on them, for instance, which read the name of the site.
    Otherwise each thread would keep its connection until the process ends, and there are more of
    them on a large machine than connections in the pool.
    """

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Schedule a job."""
        return super().submit(_releasing, partial(function, *args, **kwargs))


def _releasing(job: Callable[[], T]) -> T:
    try:
        return job()
    finally:
        release()
