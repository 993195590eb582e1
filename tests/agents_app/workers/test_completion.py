"""A caller that is cancelled leaves nothing half done."""

from __future__ import annotations

import asyncio
import gc
from typing import Any, Final

import pytest

from agents_app.workers.completion import until_done

pytestmark = pytest.mark.any_database

SECONDS: Final = 60


async def after(gate: asyncio.Event, error: Exception | None = None) -> str:
    """Wait, then return or raise."""
    await asyncio.wait_for(gate.wait(), SECONDS)
    if error is not None:
        raise error
    return "done"


async def test_the_result_or_the_error_of_the_work_is_the_callers() -> None:
    gate = asyncio.Event()
    gate.set()
    assert await until_done(asyncio.create_task(after(gate))) == "done"
    with pytest.raises(LookupError):
        await until_done(asyncio.create_task(after(gate, LookupError())))
    loop = asyncio.get_running_loop()
    assert await until_done(loop.run_in_executor(None, lambda: 5)) == 5
    work = asyncio.create_task(after(asyncio.Event()))
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await until_done(work)


@pytest.mark.parametrize("error", [None, LookupError()])
async def test_a_cancelled_caller_waits_for_the_end(error: Exception | None) -> None:
    reports: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, report: reports.append(report))
    gate = asyncio.Event()
    work = asyncio.create_task(after(gate, error))
    caller = asyncio.create_task(until_done(work))
    await asyncio.sleep(0)
    caller.cancel()
    for _ in range(3):
        await asyncio.sleep(0)
    assert not caller.done()
    assert not work.cancelled()
    gate.set()
    async with asyncio.timeout(SECONDS):
        with pytest.raises(asyncio.CancelledError):
            await caller
    assert work.done()
    # An error that no caller could receive is not reported.
    del work, caller
    gc.collect()
    await asyncio.sleep(0)
    assert reports == []


async def test_a_caller_that_is_cancelled_twice_leaves_the_work_to_go_on() -> None:
    gate = asyncio.Event()
    work = asyncio.create_task(after(gate))
    caller = asyncio.create_task(until_done(work))
    for _ in range(2):
        await asyncio.sleep(0)
        caller.cancel()
    async with asyncio.timeout(SECONDS):
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert not work.done()
        gate.set()
        assert await work == "done"
