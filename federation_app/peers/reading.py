"""Fetching the documents of peers, on threads that nothing else uses.

The server of a peer may be slow or silent, and strangers can make this server read the keys of any
peer. Neither may hold up the database threads, on which every turn depends.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from django.conf import settings

from agents_app.workers.connections import ReleasingThreads
from federation_app.peers import hubs, registry
from sessions_app import database
from sessions_app.process import registry as processes

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")

SECONDS: Final = 60.0
THREADS: Final = 16
"""How many peers a process fetches documents from at a time; the others wait."""
_threads: Final = ReleasingThreads(THREADS, thread_name_prefix="documents")


async def with_keys(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function on a database thread, again once the keys that it needs have been fetched.

    The function raises `registry.KeysDue` before it has any effect; each peer's keys are due at
    most once a minute.
    """
    while True:
        try:
            return await database.run(function, *args, **kwargs)
        except registry.KeysDue as due:
            # The caller may be cancelled, for instance because its client hangs up.
            await asyncio.shield(processes.current().spawn(_read_keys(due), name="keys"))


async def _read_keys(due: registry.KeysDue) -> None:
    if await database.run(registry.claim, due):
        fetched = await _threads.run(registry.fetch_keys, due)
        await database.run(registry.store_keys, due, fetched)


async def read_hubs() -> None:
    """Read the hubs that are due. The periodic job of each process."""
    if settings.UAMP_FEDERATION_HOST and not processes.current().draining:
        await _threads.run(database.scoped, hubs.read_due)
