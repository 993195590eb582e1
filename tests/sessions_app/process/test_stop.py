"""The end of a process: what does not end in time is named in the log and left behind."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from sessions_app import database, lifespan
from sessions_app.process import registry
from sessions_app.store import turn_writer
from sessions_app.store.turn_writer import TurnJob, TurnWriter
from sessions_app.tools import worker
from sessions_app.tools.worker import Work
from tests.sessions_app.response.running import process

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sessions_app.process.registry import Process

__all__ = ["process"]

WAIT_SECONDS = 60
# In this time a stop without a limit would still wait.
STUCK_SECONDS = 30


@pytest.fixture
def stuck() -> Iterator[threading.Event]:
    """Give an event on which threads hang until the test is over."""
    event = threading.Event()
    yield event
    event.set()


async def test_a_task_that_ignores_its_cancellation_is_abandoned(
    process: Process, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(registry, "STOP_SECONDS", 0.1)
    is_over = asyncio.Event()

    async def stubborn() -> None:
        while not is_over.is_set():
            try:
                await asyncio.wait_for(is_over.wait(), WAIT_SECONDS)
            except asyncio.CancelledError:
                continue

    task = process.spawn(stubborn(), name="stubborn")
    await asyncio.sleep(0)
    async with asyncio.timeout(STUCK_SECONDS):
        await lifespan.shutdown()
    assert not task.done()
    assert "tasks did not end within 0.1 s: stubborn" in caplog.messages
    is_over.set()
    await asyncio.wait_for(task, WAIT_SECONDS)


class Turn:
    """A turn with no text."""

    message_event = None
    event = type("Event", (), {"payload": ""})


@pytest.mark.parametrize("is_full", [False, True])
async def test_a_writer_that_hangs_is_left_behind(
    stuck: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    *,
    is_full: bool,
) -> None:
    monkeypatch.setattr(turn_writer, "CLOSE_SECONDS", 0.1)
    monkeypatch.setattr(turn_writer, "QUEUE", 2)
    has_begun = threading.Event()

    def write(turns: Sequence[Any]) -> list[Any]:
        has_begun.set()
        stuck.wait(WAIT_SECONDS)
        return [None for _ in turns]

    writer = TurnWriter("turns")
    jobs: list[TurnJob[Any, Any]] = [TurnJob(Turn(), write)]
    assert writer.put(jobs[0])
    assert await asyncio.to_thread(has_begun.wait, WAIT_SECONDS)
    while is_full and writer.put(job := TurnJob(Turn(), write)):
        jobs.append(job)
    async with asyncio.timeout(STUCK_SECONDS):
        await asyncio.to_thread(writer.close)
    waiting = 2 if is_full else 1  # the other one is the writer's end
    assert caplog.messages == [
        f"the writer of turns did not end within 0.1 s; {waiting} turns wait in its queue"
    ]
    assert not any(job.future.done() for job in jobs)
    assert not writer.put(TurnJob(Turn(), write))


@pytest.mark.django_db(transaction=True)
async def test_a_database_thread_that_hangs_is_named_and_the_process_stops(
    process: Process,
    stuck: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(database, "CLOSE_SECONDS", 0.2)
    has_begun = threading.Event()

    def hang() -> str:
        has_begun.set()
        stuck.wait(WAIT_SECONDS)
        return threading.current_thread().name

    hanging = asyncio.create_task(database.run(hang))
    assert await asyncio.to_thread(has_begun.wait, WAIT_SECONDS)
    async with asyncio.timeout(STUCK_SECONDS):
        await lifespan.shutdown()
    assert registry.current_or_none() is None
    stuck.set()
    name = await asyncio.wait_for(hanging, WAIT_SECONDS)
    # On a slow machine others have not ended either.
    names = caplog.text.partition("database threads did not end within 0.2 s: ")[2].splitlines()[0]
    assert name in names.split(", ")


def test_a_lease_thread_that_hangs_does_not_keep_its_tool(
    stuck: threading.Event, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(worker, "LEASE_END_SECONDS", 0.1)
    monkeypatch.setattr(Work, "_renew_until_end", lambda _: stuck.wait(STUCK_SECONDS))
    claim: Any = type("Claim", (), {"pk": 1, "call_id": "call_1", "percent": 0})
    with Work(claim):
        pass
    assert not stuck.is_set()
    assert caplog.messages == ["the lease thread of call call_1 did not end within 0.1 s"]
