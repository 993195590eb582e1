"""Memory of ended answers in a process: nothing of the run, and a bounded history."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from chat_app.log.entries import NewMessage
from sessions_app import database, services
from sessions_app.access import auth
from sessions_app.process import history
from sessions_app.process.history import History
from tests.client import WAIT_SECONDS
from tests.sessions_app.response.running import Hearer, ask, open_session, process
from tests.sessions_app.turn import team_tools
from tests.sessions_app.turn.delegation import doer, task_for
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django import Settings

    from sessions_app.process.registry import Process
    from sessions_app.records import OpenSession
    from sessions_app.response.run import Run

__all__ = ["process"]

OURS = ("agents_app", "chat_app", "sessions_app", "uamp", "uap", "upp")


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Leave circles of references where they are: what is freed is freed by itself."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


async def answered(process: Process, session: OpenSession, number: int) -> list[Any]:
    """Have an answer made, and return weak references to its run and to what it said."""
    hearer = Hearer()
    run: Run = await ask(session, f"Hello {number}", hearer, f"evt_{number}")
    parts = [weakref.ref(run), weakref.ref(run.answer), weakref.ref(run.answer.builder)]
    del run
    async with asyncio.timeout(WAIT_SECONDS):
        await hearer.is_over.wait()
    await until_idle(process)
    return parts


async def until_idle(process: Process) -> None:
    """Wait until the process carries no run, and the loop has released their tasks."""
    for _ in range(1000):
        await asyncio.sleep(0)
        if not process.runs:
            break
    await asyncio.sleep(0)


async def until_freed(parts: list[Any]) -> None:
    """Wait for the end of a run's task: its last hop to a thread may follow the run's end."""
    for _ in range(1000):
        if not any(part() for part in parts):
            break
        await asyncio.sleep(0.01)


@pytest.mark.usefixtures("no_collector")
async def test_a_run_that_ended_is_let_go_of_without_the_garbage_collector(
    process: Process,
) -> None:
    session = await database.run(open_session, "echo")
    parts = await answered(process, session, 1)
    await until_freed(parts)
    assert [part() for part in parts] == [None, None, None]


def team_session() -> OpenSession:
    """Open a visitor's session with an agent that delegates; both agents have a price."""
    prices = {"tools": {"search": "0.1"}}
    doer("boss", "worker", pricing=prices)
    doer("worker", pricing=prices)
    return services.open_session(
        principal=auth.anonymous(),
        transport="websocket",
        create=ev.SessionCreate(),
        agent_name="boss",
        chat_id=None,
    )


@pytest.mark.usefixtures("no_collector")
async def test_paid_and_delegated_runs_are_freed_without_the_garbage_collector(
    process: Process,
) -> None:
    session = await database.run(team_session)
    hearer = Hearer()
    await ask(session, task_for("worker", team_tools.order(words=3)), hearer)
    async with asyncio.timeout(WAIT_SECONDS):
        while len(process.runs) < 2:  # noqa: ASYNC110 no event says it
            await asyncio.sleep(0.01)
        parts = [
            weakref.ref(part)
            for run in process.runs.values()
            for part in (run, run.answer, run.answer.builder)
        ]
        assert all(run.has_price for run in process.runs.values())
        await hearer.is_over.wait()
    await until_idle(process)
    await until_freed(parts)
    assert [part() for part in parts] == [None] * 6


async def test_no_kind_of_object_grows_with_the_turns(process: Process, settings: Settings) -> None:
    # The history is what a process remembers; it is full before the objects are counted.
    settings.UAMP_HISTORY_MESSAGES = 4
    session = await database.run(open_session, "echo")

    async def counts(numbers: range) -> Counter[str]:
        parts: list[Any] = []
        for number in numbers:
            parts = await answered(process, session, number)
        # The task of the last run ends after the run has left the process.
        async with asyncio.timeout(WAIT_SECONDS):
            while any(part() for part in parts):
                await asyncio.sleep(0.01)
                gc.collect()
        gc.collect()
        return Counter(
            f"{type(instance).__module__}.{type(instance).__name__}"
            for instance in gc.get_objects()
            if str(type(instance).__module__).startswith(OURS)
        )

    before = await counts(range(5))
    # Jobs of the process hold a few objects in passing. A leak has one for each of these turns.
    growth = [await counts(numbers) - before for numbers in (range(5, 25), range(25, 45))]
    assert {name for name, number in (growth[0] & growth[1]).items() if number >= 5} == set()


async def test_the_history_that_is_remembered_is_bounded_by_its_characters() -> None:
    remembered = History(chars=10_000)
    for number in range(20):
        chat_id = f"chat_{number}"
        assert await remembered.before(chat_id, 1) == []
        message = NewMessage(id=str(number), role="user", at=timezone.now(), content="x" * 1_500)
        remembered.append(chat_id, 1, 1, message)
        assert remembered.chars <= 10_000
    # The chats of the last turns are still known, without a look into the database.
    assert [m.content for m in await remembered.before("chat_19", 2)] == ["x" * 1_500]
    assert remembered.chars > 7_500


@pytest.mark.parametrize("limit", [0, 3])
async def test_messages_that_are_shown_no_more_are_counted_no_more(
    limit: int, settings: Settings
) -> None:
    settings.UAMP_HISTORY_MESSAGES = limit
    remembered = History()
    await remembered.before("chat_1", 1)
    for seq in range(1, 8):
        message = NewMessage(id=str(seq), role="user", at=timezone.now(), content="x" * seq)
        remembered.append("chat_1", seq, 1, message)
    contents = [m.content for m in await remembered.before("chat_1", 8)]
    assert contents == ["x" * 5, "x" * 6, "x" * 7][:limit]
    assert remembered.chars == sum(len(content) + history.MESSAGE_CHARS for content in contents)


async def test_a_history_that_is_too_long_is_not_remembered_and_takes_no_place() -> None:
    remembered = History(chars=1_000)
    await remembered.before("chat_1", 1)
    message = NewMessage(id="1", role="user", at=timezone.now(), content="x" * 2_000)
    remembered.append("chat_1", 1, 1, message)
    assert (remembered.chars, remembered._entries) == (0, {})
    assert history.CHARS_REMEMBERED < 100_000_000
