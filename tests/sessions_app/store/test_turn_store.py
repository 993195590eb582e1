"""The turn store: the same rows by either body, one effect for each turn, no number left out."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from django.db import DataError, IntegrityError, OperationalError, connection, connections

from chat_app.log.entries import message_event
from chat_app.models import Chat, ChatEvent, Message
from sessions_app import database
from sessions_app.billing.continued_answers import AlreadyContinued, ContinuedAnswer
from sessions_app.models import InboundEvent, PendingInput, Response, ToolCall
from sessions_app.store import orm, sql, turn_writer
from sessions_app.store.attempts import write_each
from sessions_app.store.group_commit import (
    ORM,
    SQL,
    Bodies,
    DirectTurnStore,
    GroupTurnStore,
    StoreBusy,
)
from sessions_app.store.records import (
    Failed,
    Fenced,
    Finished,
    Start,
    StartCommitted,
    StartRefused,
    StartRepeated,
)
from sessions_app.store.turn_writer import QUEUE
from tests import factories
from tests.client import wait_until
from tests.sessions_app.store import turn_rows as worlds
from tests.sessions_app.store.turn_rows import finish, start

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

pytestmark = pytest.mark.usefixtures("world")


@pytest.fixture
def world(database_threads: None) -> None:
    """Write the chats and sessions of the turns; what threads commit is removed afterwards."""
    worlds.build_world()


@pytest.fixture(params=[SQL, ORM], ids=["sql", "orm"])
def bodies(request: pytest.FixtureRequest) -> Bodies:
    """Run a test with the bodies that are used, and with those that specify them."""
    bodies: Bodies = request.param
    return bodies


def outcomes_by(bodies: Bodies, batches: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Write batches and return their outcomes; any failure is `failed`."""
    batch_outcomes = []
    for batch in filter(None, batches):
        write: Any = bodies.start if isinstance(batch[0], Start) else bodies.finish
        outcomes = write_each(write, batch)
        batch_outcomes.append(["failed" if isinstance(o, Failed) else o for o in outcomes])
    return batch_outcomes


# --- The same rows ---


@pytest.mark.parametrize("seed", range(6))
def test_sql_writes_the_rows_that_the_orm_writes(seed: int) -> None:
    batches = worlds.RandomTurns(seed).batches(16)
    worlds.add_roots()
    by_orm, rows_of_orm = outcomes_by(ORM, batches), worlds.rows()
    worlds.clear_world()
    worlds.build_world()
    worlds.add_roots()
    by_sql, rows_of_sql = outcomes_by(SQL, batches), worlds.rows()
    assert by_sql == by_orm
    assert rows_of_sql == rows_of_orm
    assert len(rows_of_orm["Message"]) > 15


# --- Beginnings ---


def test_turns_of_one_batch_follow_each_other_in_their_chat(bodies: Bodies) -> None:
    turns = [start("chat_b"), start("chat_a"), start("chat_b")]
    assert bodies.start(turns) == [StartCommitted(1), StartCommitted(1), StartCommitted(3)]
    assert Chat.objects.get(pk="chat_b").last_seq == 4
    assert list(
        ChatEvent.objects.filter(chat_id="chat_b").order_by("seq").values_list("seq", "type")
    ) == [
        (1, "message.created"),
        (2, "response.created"),
        (3, "message.created"),
        (4, "response.created"),
    ]


def test_a_repeated_event_has_its_first_outcome(bodies: Bodies) -> None:
    first = start()
    assert bodies.start([first]) == [StartCommitted(1)]
    again = start(event_id=first.event_id)
    assert bodies.start([again]) == [StartRepeated([first.responses[0].id])]
    assert Message.objects.count() == 1


def test_the_same_event_twice_in_a_batch_has_one_effect(bodies: Bodies) -> None:
    first = start()
    second = start(event_id=first.event_id)
    assert write_each(bodies.start, [first, second]) == [
        StartCommitted(1),
        StartRepeated([first.responses[0].id]),
    ]
    assert Message.objects.count() == 1


def test_another_body_under_a_used_id_is_refused(bodies: Bodies) -> None:
    first = start()
    bodies.start([first])
    other = start(event_id=first.event_id, sha256="1" * 64)
    assert bodies.start([other]) == [StartRefused("event_id_conflict")]


def test_strangers_and_ended_sessions_are_refused_and_the_rest_is_written(bodies: Bodies) -> None:
    turns = [
        start(user_id=worlds.STRANGER),
        start(),
        start(session_id="chat_a_closed"),
        start(session_id="missing"),
    ]
    assert bodies.start(turns) == [
        StartRefused("chat_not_found"),
        StartCommitted(1),
        StartRefused("unknown_session"),
        StartRefused("unknown_session"),
    ]
    assert (Message.objects.count(), InboundEvent.objects.count()) == (1, 1)


def test_a_beginning_consumes_its_stored_inputs(bodies: Bodies) -> None:
    bodies.start([start(pending_input_ids=(1, 2))])
    assert list(PendingInput.objects.order_by("pk").values_list("pk", flat=True)) == [3, 4]
    # Sent again, they are known by what they led to.
    turn, *inputs = InboundEvent.objects.order_by("id")
    assert [row.event_id for row in inputs] == ["1", "2"]
    assert {str(row.outcome) for row in inputs} == {str(turn.outcome)}


def test_a_continued_answer_is_claimed_by_the_turn_that_is_written(bodies: Bodies) -> None:
    bodies.start([start()])
    call = factories.tool_call(Response.objects.get())
    continued = ContinuedAnswer(call=call.pk, rounds=1, claimed_by="")
    gone = start(continued=continued, responses=[worlds.new_response("resp_x", agent_id="missing")])
    turn, late = start(continued=continued), start(continued=continued)
    (failed,) = write_each(bodies.start, [gone])
    assert isinstance(failed, Failed)
    assert ToolCall.objects.get().continued_by == ""
    began, refused = write_each(bodies.start, [turn, late])
    assert began == StartCommitted(3)
    assert isinstance(refused, Failed)
    assert isinstance(refused.error, AlreadyContinued)
    assert ToolCall.objects.get().continued_by == turn.responses[0].id
    assert (Response.objects.count(), Chat.objects.get(pk="chat_a").last_seq) == (2, 4)
    # An attempt whose reply to COMMIT was lost finds what it wrote.
    assert bodies.start([turn]) == [StartCommitted(3)]


# --- Ends ---


def test_an_end_is_written_once_for_the_holder_of_the_fence(bodies: Bodies) -> None:
    turn = start()
    bodies.start([turn])
    assert bodies.finish([finish(turn, fence=2)]) == [Fenced()]
    end = finish(turn)
    assert bodies.finish([end]) == [Finished(3)]
    assert bodies.finish([finish(turn)]) == [Fenced()]
    assert bodies.finish([end]) == [Finished(3)]
    row = Response.objects.get()
    assert (row.status, row.text, row.lease_until) == ("completed", "Hello", None)
    assert ChatEvent.objects.count() == 4


def test_an_end_closes_its_open_tool_calls(bodies: Bodies) -> None:
    turn = start()
    bodies.start([turn])
    factories.tool_call(Response.objects.get())
    bodies.finish([finish(turn, has_tool_calls=True)])
    assert ToolCall.objects.get().status == "cancelled"


# --- Failures ---


def test_a_turn_that_breaks_a_key_fails_alone(bodies: Bodies) -> None:
    broken = start(responses=[worlds.new_response("resp_x", agent_id="missing")])
    first, failed, last = write_each(bodies.start, [start(), broken, start()])
    assert (first, last) == (StartCommitted(1), StartCommitted(3))
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, IntegrityError)
    assert Chat.objects.get(pk="chat_a").last_seq == 4


def test_a_turn_that_meets_a_defect_fails_alone(
    bodies: Bodies, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # On PostgreSQL one statement is a transaction of its own, unless a turn has more to write.
    first, broken, last = start(), start(pending_input_ids=[1]), start()

    def defect(turn: Start, _: int) -> None:
        if turn is broken:
            raise RuntimeError("a defect of the code")

    for module in (sql, orm):
        monkeypatch.setattr(module, "use_inputs", defect)
    began, failed, also_began = write_each(bodies.start, [first, broken, last])
    assert (began, also_began) == (StartCommitted(1), StartCommitted(3))
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, RuntimeError)
    assert "a turn could not be written" in caplog.text
    assert Chat.objects.get(pk="chat_a").last_seq == 4


@pytest.mark.postgres
def test_a_turn_with_nul_fails_alone(bodies: Bodies) -> None:
    message = worlds.new_message("msg_nul", content="a\x00b")
    broken = start(message=message, message_event=message_event("chat_a", message))
    first, failed, last = write_each(bodies.start, [start(), broken, start()])
    assert (first, last) == (StartCommitted(1), StartCommitted(3))
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, DataError | ValueError)
    assert not Message.objects.filter(pk="msg_nul").exists()


def losing_one_answer(write: Callable[[Sequence[Any]], list[Any]]) -> Callable[[Any], list[Any]]:
    """Return the same write, whose first commit is not acknowledged."""
    lost: list[bool] = []

    def write_and_lose(turns: Sequence[Any]) -> list[Any]:
        outcomes = write(turns)
        if not lost:
            lost.append(True)
            raise OperationalError("the connection broke after COMMIT")
        return outcomes

    return write_and_lose


def test_a_lost_answer_to_commit_is_found_out(bodies: Bodies) -> None:
    turns = [start(), start()]
    assert write_each(losing_one_answer(bodies.start), turns) == [
        StartCommitted(1),
        StartCommitted(3),
    ]
    ends = [finish(turn) for turn in turns]
    assert write_each(losing_one_answer(bodies.finish), ends) == [Finished(5), Finished(7)]
    assert ChatEvent.objects.count() == 8


# --- The stores ---


@pytest.mark.parametrize("store_class", [GroupTurnStore, DirectTurnStore])
async def test_three_stores_number_one_chat_without_gaps(
    bodies: Bodies, store_class: type[GroupTurnStore | DirectTurnStore]
) -> None:
    stores = [store_class(bodies) for _ in range(3)]

    async def turn(store: GroupTurnStore | DirectTurnStore) -> None:
        new = start()
        assert isinstance(await store.start(new), StartCommitted)
        assert isinstance(await store.finish(finish(new)), Finished)

    await asyncio.gather(*(turn(store) for store in stores for _ in range(10)))
    for store in stores:
        await asyncio.to_thread(store.close)

    def seqs() -> list[int]:
        events = ChatEvent.objects.filter(chat_id="chat_a").order_by("seq")
        return list(events.values_list("seq", flat=True))

    assert await asyncio.to_thread(seqs) == list(range(1, 121))


async def test_a_broken_turn_raises_for_its_own_caller_only(bodies: Bodies) -> None:
    store = GroupTurnStore(bodies)
    broken = start(responses=[worlds.new_response("resp_x", agent_id="missing")])
    good, failed = await asyncio.gather(
        store.start(start()), store.start(broken), return_exceptions=True
    )
    await asyncio.to_thread(store.close)
    assert good == StartCommitted(1)
    assert isinstance(failed, IntegrityError)


async def test_closing_writes_what_was_taken_and_takes_no_more() -> None:
    store = GroupTurnStore()
    waiting = [asyncio.create_task(store.start(start())) for _ in range(5)]
    await asyncio.sleep(0)
    await asyncio.to_thread(store.close)
    assert sorted(
        outcome.first_seq
        for outcome in await asyncio.gather(*waiting)
        if isinstance(outcome, StartCommitted)
    ) == [1, 3, 5, 7, 9]
    with pytest.raises(StoreBusy):
        await store.start(start())


async def test_a_full_store_refuses_before_anything_is_written() -> None:
    busy, free = threading.Event(), threading.Event()

    def wait(turns: Sequence[Any]) -> list[Any]:
        busy.set()
        free.wait(60)
        return [StartCommitted(1) for _ in turns]

    store = GroupTurnStore(Bodies(wait, SQL.finish))
    turn = start()
    waiting = [asyncio.create_task(store.start(turn))]
    assert await asyncio.to_thread(busy.wait, 60)
    waiting += [asyncio.create_task(store.start(turn)) for _ in range(QUEUE)]
    await asyncio.sleep(0)
    with pytest.raises(StoreBusy):
        await store.start(turn)
    free.set()
    await asyncio.gather(*waiting)
    await asyncio.to_thread(store.close)


@pytest.mark.postgres
async def test_the_writer_keeps_its_connection_until_it_breaks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turn_writer, "IDLE_SECONDS", 60)
    used: list[int] = []

    def begin(turns: Sequence[Start]) -> list[Any]:
        outcomes = SQL.start(turns)
        used.append(connection.connection.info.backend_pid)
        return outcomes

    def end_backend() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [used[-1]])

    store = GroupTurnStore(Bodies(begin, SQL.finish))
    for _ in range(3):
        assert isinstance(await store.start(start()), StartCommitted)
    await asyncio.to_thread(database.scoped, end_backend)
    assert isinstance(await store.start(start()), StartCommitted)
    await asyncio.to_thread(store.close)
    assert len(set(used[:3])) == 1
    assert used[3] != used[2]


@pytest.mark.postgres
async def test_an_idle_writer_gives_its_connection_back(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[Any] = []

    def begin(turns: Sequence[Start]) -> list[Any]:
        used.append(connections["default"])
        return SQL.start(turns)

    monkeypatch.setattr(turn_writer, "IDLE_SECONDS", 0.01)
    store = GroupTurnStore(Bodies(begin, SQL.finish))
    assert isinstance(await store.start(start()), StartCommitted)
    await asyncio.to_thread(wait_until, lambda: used[0].connection is None)
    await asyncio.to_thread(store.close)
