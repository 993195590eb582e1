"""One read for all who want it before it begins, another one for those who come later."""

from __future__ import annotations

import asyncio
import threading

import pytest

from sessions_app.process.shared_reads import SharedReads


@pytest.mark.django_db(transaction=True)
async def test_a_read_is_shared_until_it_begins(database_threads: None) -> None:
    reads = SharedReads()
    began, go_on = threading.Event(), threading.Event()
    calls: list[str] = []

    def read(chat_id: str) -> str:
        calls.append(chat_id)
        began.set()
        assert go_on.wait(10)
        return f"rows of {chat_id}"

    first = [asyncio.create_task(reads.read(read, "chat_1")) for _ in range(100)]
    assert await asyncio.to_thread(began.wait, 10)
    later = asyncio.create_task(reads.read(read, "chat_1"))
    await asyncio.sleep(0)
    first[0].cancel()
    go_on.set()

    assert await asyncio.gather(*first[1:], later) == ["rows of chat_1"] * 100
    assert calls == ["chat_1"] * 2


@pytest.mark.django_db(transaction=True)
async def test_an_error_reaches_all_who_read_and_is_forgotten(database_threads: None) -> None:
    reads = SharedReads()
    results: list[str | Exception] = [LookupError("away"), "rows"]

    def read() -> str:
        result = results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    failed = await asyncio.gather(reads.read(read), reads.read(read), return_exceptions=True)
    assert [type(error) for error in failed] == [LookupError, LookupError]
    assert await reads.read(read) == "rows"
