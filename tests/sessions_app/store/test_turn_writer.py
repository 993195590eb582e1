"""Turns with much text, and turns that meet a lock, delay no other turn."""

from __future__ import annotations

import asyncio
import threading
import uuid
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from django.db import OperationalError, connection, transaction

from chat_app.log.entries import message_event
from chat_app.models import Chat
from sessions_app import database
from sessions_app.store import sql
from sessions_app.store.attempts import write_each
from sessions_app.store.group_commit import LOCK_MILLISECONDS, ORM, SQL, Bodies, GroupTurnStore
from sessions_app.store.lock_wait import limit, lock_wait
from sessions_app.store.records import Failed, Finished, StartCommitted
from sessions_app.store.turn_writer import BATCH_CHARS, text_chars
from tests.sessions_app.store import turn_rows as worlds
from tests.sessions_app.store.turn_rows import finish, start
from tests.threads import join_threads

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sessions_app.store.records import Start

pytestmark = pytest.mark.usefixtures("world")

WAIT_SECONDS = 60
ORDINARY_CHARS = 10_000


@pytest.fixture
def world(database_threads: None) -> None:
    """Write the chats and sessions of the turns; what threads commit is removed afterwards."""
    worlds.build_world()


@pytest.fixture(params=[SQL, ORM], ids=["sql", "orm"])
def bodies(request: pytest.FixtureRequest) -> Bodies:
    """Run a test with the bodies that are used, and with those that specify them."""
    bodies: Bodies = request.param
    return bodies


@pytest.fixture
def locked_chat() -> Iterator[threading.Event]:
    """Hold the lock of chat_a until the event is set."""
    is_locked, released = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            Chat.objects.select_for_update().get(pk="chat_a")
            is_locked.set()
            released.wait(WAIT_SECONDS)

    thread = threading.Thread(target=database.scoped, args=(hold,))
    thread.start()
    assert is_locked.wait(WAIT_SECONDS)
    yield released
    released.set()
    join_threads([thread])


def long_start(chars: int) -> Start:
    """Return a turn whose message has so many characters."""
    message = worlds.new_message(f"msg_{uuid.uuid4().hex}", content="x" * chars)
    return start(message=message, message_event=message_event("chat_a", message))


class HeldBodies:
    """Bodies whose writes of turns with much text wait until they are let go."""

    def __init__(self) -> None:
        self.begun, self.free = threading.Event(), threading.Event()
        self.groups: list[list[int]] = []

    def start(self, turns: Sequence[Start]) -> list[Any]:
        """Return after the test lets turns with much text go."""
        sizes = [text_chars(turn) for turn in turns]
        self.groups.append(sizes)
        if max(sizes) > ORDINARY_CHARS:
            self.begun.set()
            assert self.free.wait(WAIT_SECONDS)
        return [StartCommitted(1) for _ in turns]


async def test_a_large_turn_delays_no_small_one() -> None:
    held_bodies = HeldBodies()
    store = GroupTurnStore(Bodies(held_bodies.start, SQL.finish))
    large = asyncio.create_task(store.start(long_start(100_000)))
    try:
        assert await asyncio.to_thread(held_bodies.begun.wait, WAIT_SECONDS)
        await asyncio.wait_for(store.start(start()), WAIT_SECONDS / 2)
        assert not large.done()
    finally:
        held_bodies.free.set()
        await large
        await asyncio.to_thread(store.close)


async def test_a_group_is_bounded_in_its_text() -> None:
    held_bodies = HeldBodies()
    store = GroupTurnStore(Bodies(held_bodies.start, SQL.finish))
    turns = [asyncio.create_task(store.start(long_start(300_000)))]
    assert await asyncio.to_thread(held_bodies.begun.wait, WAIT_SECONDS)
    turns += [asyncio.create_task(store.start(long_start(300_000))) for _ in range(10)]
    await asyncio.sleep(0)
    held_bodies.free.set()
    await asyncio.gather(*turns)
    await asyncio.to_thread(store.close)
    assert sum(map(len, held_bodies.groups)) == 11
    assert len(held_bodies.groups) < 11
    assert all(sum(sizes) <= BATCH_CHARS for sizes in held_bodies.groups)


async def test_one_turn_beyond_the_bound_is_a_group_of_its_own() -> None:
    held_bodies = HeldBodies()
    held_bodies.free.set()
    store = GroupTurnStore(Bodies(held_bodies.start, SQL.finish))
    await asyncio.gather(*(store.start(long_start(BATCH_CHARS)) for _ in range(3)))
    await asyncio.to_thread(store.close)
    assert [len(sizes) for sizes in held_bodies.groups] == [1, 1, 1]


@pytest.mark.postgres
async def test_a_turn_that_meets_a_lock_delays_no_other_turn(
    bodies: Bodies, locked_chat: threading.Event
) -> None:
    limits: list[str | None] = []

    def begin(turns: Sequence[Start]) -> list[Any]:
        limits.append(limit())
        return bodies.start(turns)

    store = GroupTurnStore(Bodies(begin, bodies.finish))
    stuck = asyncio.create_task(store.start(start("chat_a")))
    await asyncio.sleep(0)
    other = start("chat_b")
    assert await store.start(other) == StartCommitted(1)
    assert await store.finish(finish(other)) == Finished(3)
    # It waits, and has not failed.
    assert not stuck.done()
    locked_chat.set()
    assert await stuck == StartCommitted(1)
    await asyncio.to_thread(store.close)
    assert set(limits) == {f"{LOCK_MILLISECONDS}ms", None}


@pytest.mark.postgres
def test_the_limit_of_a_lock_ends_with_its_write(
    bodies: Bodies, locked_chat: threading.Event
) -> None:
    def of_connection() -> str:
        with connection.cursor() as cursor:
            cursor.execute("SHOW lock_timeout")
            return str(cursor.fetchone()[0])

    before = of_connection()
    with lock_wait(50):
        turn = start("chat_b")
        assert bodies.start([turn]) == [StartCommitted(1)]
        assert of_connection() == before
        assert bodies.finish([finish(turn)]) == [Finished(3)]
        assert of_connection() == before
        (failed,) = write_each(bodies.start, [start("chat_a")])
    assert isinstance(failed, Failed)
    assert isinstance(failed.error.__cause__, psycopg.errors.LockNotAvailable)
    assert of_connection() == before
    locked_chat.set()


def test_a_group_that_took_too_long_is_written_one_by_one() -> None:
    groups: list[int] = []

    def slow(turns: Sequence[Start]) -> list[Any]:
        groups.append(len(turns))
        if len(turns) > 1:
            raise OperationalError from psycopg.errors.QueryCanceled("statement timeout")
        return sql.start_turns(turns)

    outcomes = write_each(slow, [start(), start(), start()])
    assert outcomes == [StartCommitted(1), StartCommitted(3), StartCommitted(5)]
    assert groups == [3, 1, 1, 1]
