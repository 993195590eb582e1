"""Threads for payments that a facilitator carries out.

A facilitator may take long over a payment, while the requests of all clients need the event loop's
and the database's threads.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

from sessions_app import database

if TYPE_CHECKING:
    from collections.abc import Callable

_Taken = TypeVar("_Taken")

# Each thread here holds a pooled connection.
_threads: Final = ThreadPoolExecutor(4, thread_name_prefix="payments")


async def run(take: Callable[[], _Taken]) -> _Taken:
    """Return the result of a function that may query the facilitator and the database."""
    return await asyncio.get_running_loop().run_in_executor(_threads, database.scoped, take)
