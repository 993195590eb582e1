"""Threads for payments that a facilitator carries out.

A facilitator may take long over a payment, while the requests of all clients need the event loop's
and the database's threads.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

from agents_app.workers.completion import until_done
from sessions_app import database

if TYPE_CHECKING:
    from collections.abc import Callable

_Taken = TypeVar("_Taken")

THREADS: Final = 4
"""Each of them holds a pooled connection."""
threads: Final = ThreadPoolExecutor(THREADS, thread_name_prefix="payments")


async def run(take: Callable[[], _Taken]) -> _Taken:
    """Return the result of a function that may query the facilitator and the database.

    A caller that is cancelled waits for it first: the next request of a departed client would
    settle the same payment at the same time.
    """
    loop = asyncio.get_running_loop()
    return await until_done(loop.run_in_executor(threads, database.scoped, take))
