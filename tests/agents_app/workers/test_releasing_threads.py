"""Threads for requests to other servers."""

from __future__ import annotations

import asyncio
import contextvars
import threading

from agents_app.workers.connections import ReleasingThreads

WAIT_SECONDS = 60


async def test_a_job_that_waits_ends_with_the_task_that_waits_for_it() -> None:
    threads = ReleasingThreads(1)
    may_end, ran = threading.Event(), list[str]()
    first = asyncio.ensure_future(threads.run(may_end.wait, WAIT_SECONDS))
    second = asyncio.ensure_future(threads.run(ran.append, "second"))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait([second], timeout=WAIT_SECONDS)
    may_end.set()
    assert await asyncio.wait_for(first, WAIT_SECONDS)
    await asyncio.wait_for(threads.run(ran.append, "third"), WAIT_SECONDS)
    threads.shutdown()
    assert ran == ["third"]


async def test_a_job_runs_in_the_context_of_its_caller() -> None:
    threads = ReleasingThreads(1)
    name = contextvars.ContextVar("name", default="")
    name.set("caller")
    assert await asyncio.wait_for(threads.run(name.get), WAIT_SECONDS) == "caller"
    threads.shutdown()
