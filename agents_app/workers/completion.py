"""Work that a cancelled caller does not leave half done."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from asyncio import Future

T = TypeVar("T")


async def until_done(work: Future[T]) -> T:
    """Return the result of a task or of a thread's future.

    A caller that is cancelled, such as the request of a departed client, waits until the work is
    done. Cancelled once more, it leaves the work to go on without it.
    """
    try:
        return await asyncio.shield(work)
    finally:
        await asyncio.wait([work])
        if not work.cancelled():
            # Retrieved, in case the caller was cancelled.
            work.exception()
