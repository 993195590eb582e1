"""A connection says a long log in pieces, and outlives a database that is away for a moment."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.db import OperationalError

from chat_app.log.history import LoggedEvent
from sessions_app.access import auth
from sessions_app.connection import client_connection, outgoing_queue
from sessions_app.connection.client_connection import ClientConnection
from sessions_app.connection.layer_groups import LayerGroups
from sessions_app.connection.log_reader import PAGE, RunningText
from sessions_app.connection.outgoing_queue import BATCH_FRAMES, Outgoing
from tests.sessions_app.connection.sessions import open_session

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest
    from pytest_django import Settings


@dataclass
class Log:
    """A LogReader: messages and one running answer; it fails as often as configured."""

    length: int
    failures: int = 0
    may_be_read: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.may_be_read.set()

    async def events_after(self, chat_id: str, after: int) -> Sequence[LoggedEvent]:
        """See LogReader."""
        await asyncio.wait_for(self.may_be_read.wait(), 60)
        if self.failures:
            self.failures -= 1
            raise OperationalError("the connection is closed")
        places = range(after + 1, min(after + PAGE, self.length) + 1)
        return [
            LoggedEvent(
                seq,
                "message.created",
                "",
                {
                    "type": "message.created",
                    "event_id": str(seq),
                    "timestamp": 1,
                    "chat_id": chat_id,
                },
            )
            for seq in places
        ]

    async def is_member(self, chat_id: str, user_id: int | None) -> bool:  # noqa: ARG002 the interface
        """See LogReader."""
        return False

    async def running(self, chat_id: str) -> Sequence[RunningText]:
        """See LogReader."""
        del chat_id
        return [RunningText("resp_1", "echo", "so far", "")]


def connected(log: Log) -> ClientConnection:
    """Return a connection with one session that follows a chat from its beginning."""
    connection = ClientConnection(
        principal=auth.anonymous(),
        transport="websocket",
        reader=log,
        groups=LayerGroups(asyncio.create_task),
    )
    connection.attach(open_session(last_seq=log.length), cursor=0)
    return connection


async def read_on(connection: ClientConnection, frames: int) -> list[list[dict[str, object]]]:
    """Return the batches until so many frames came."""
    batches: list[list[dict[str, object]]] = []
    async with asyncio.timeout(5):
        while sum(map(len, batches)) < frames:
            batch = await connection.outgoing.batch()
            assert batch is not None
            batches.append([json.loads(outgoing.text) for outgoing in batch])
    return batches


async def test_a_long_log_is_not_read_faster_than_it_is_sent() -> None:
    log = Log(length=10 * PAGE + 3)
    connection = connected(log)
    subscription = connection.sessions["sess_1"].subscription
    connection.outgoing.put(subscription.catch_up)
    connection.outgoing.put(subscription.catch_up_running)
    batches = await read_on(connection, log.length + 2)
    assert max(map(len, batches)) <= PAGE + BATCH_FRAMES
    frames = [frame for batch in batches for frame in batch]
    assert [frame.get("seq") for frame in frames[: log.length]] == list(range(1, log.length + 1))
    assert [frame["type"] for frame in frames[log.length :]] == [
        "response.created",
        "response.delta",
    ]


async def test_a_session_that_fell_behind_is_not_sent_everything_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outgoing_queue, "QUEUE_ITEMS", 2)
    log = Log(length=10 * PAGE)
    connection = connected(log)
    subscription = connection.sessions["sess_1"].subscription
    for _ in range(4):
        connection.outgoing.put(subscription.repair)
    batches = await read_on(connection, log.length + 2)
    assert max(map(len, batches)) <= PAGE + BATCH_FRAMES
    assert batches[-1][-1]["type"] == "response.delta"


async def test_the_queue_of_a_client_is_bounded_in_bytes(settings: Settings) -> None:
    settings.UAMP_OWED_BYTES = 100_000
    log = Log(length=100)
    connection = connected(log)
    subscription = connection.sessions["sess_1"].subscription
    for seq in range(1, 101):
        encoded = live_event(seq)[:-1] + ',"content":"' + "x" * 10_000 + '"}'
        subscription.event(seq, "message.created", "", encoded)
        assert connection.outgoing.pending_bytes <= settings.UAMP_OWED_BYTES + 11_000

    # It was dropped, and is read again from the log when the client reads on.
    frames = [frame for batch in await read_on(connection, 101) for frame in batch]
    assert [frame["seq"] for frame in frames if "seq" in frame] == list(range(1, 101))
    assert await read_nothing(connection)
    assert connection.outgoing.pending_bytes == 0


async def read_nothing(connection: ClientConnection) -> bool:
    """Return whether there is nothing more to be sent."""
    with suppress(TimeoutError):
        async with asyncio.timeout(0.05):
            await connection.outgoing.batch()
            return False
    return True


async def test_no_further_frame_is_read_from_a_client_that_does_not_read_the_answers(
    settings: Settings,
) -> None:
    settings.UAMP_OWED_BYTES = 10_000
    connection = connected(Log(length=0))
    while connection.outgoing.pending_bytes <= settings.UAMP_OWED_BYTES:
        connection.send_frame("x" * 1000, "")
    waiting = asyncio.ensure_future(connection.outgoing.wait_for_room())
    await asyncio.sleep(0)
    assert not waiting.done()
    await connection.outgoing.batch()
    assert not waiting.done()  # it is being sent: the client has not taken it yet
    sending = asyncio.ensure_future(connection.outgoing.batch())
    await asyncio.wait_for(waiting, 5)
    sending.cancel()


async def test_a_stream_whose_answers_are_not_read_ends(settings: Settings) -> None:
    settings.UAMP_OWED_BYTES = 10_000
    connection = connected(Log(length=0))
    for _ in range(1000):
        connection.send_frame("x" * 1000, "")
        assert connection.outgoing.pending_bytes <= 2 * settings.UAMP_OWED_BYTES + 2000
    assert connection.closed_with == client_connection.CLOSE_TRY_AGAIN_LATER


async def test_a_database_that_is_away_for_a_moment_does_not_end_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outgoing_queue, "READ_AGAIN_SECONDS", 0.01)
    log = Log(length=3, failures=2)
    connection = connected(log)
    connection.outgoing.put(connection.sessions["sess_1"].subscription.catch_up)
    (first, *_) = await read_on(connection, 3)
    assert [frame["seq"] for frame in first[:3]] == [1, 2, 3]


async def test_a_pause_is_an_empty_batch_even_while_the_database_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outgoing_queue, "READ_AGAIN_SECONDS", 0.01)
    log = Log(length=3, failures=1_000_000)
    outgoing = (connection := connected(log)).outgoing
    async with asyncio.timeout(20):
        assert await outgoing.batch(0.01) == []
        outgoing.put(connection.sessions["sess_1"].subscription.catch_up)
        assert await outgoing.batch(0.01) == []
    log.failures = 0
    (first, *_) = await read_on(connection, 3)
    assert [frame["seq"] for frame in first[:3]] == [1, 2, 3]


def live_event(seq: int) -> str:
    """Return a durable event as the chat's group delivers it."""
    fields = {"type": "message.created", "event_id": "1", "timestamp": 1, "seq": seq}
    return json.dumps(fields, separators=(",", ":"))


async def test_an_event_does_not_overtake_a_reply() -> None:
    connection = connected(Log(length=0))
    connection.send_frame('{"type":"pong"}', "")
    connection.sessions["sess_1"].subscription.event(1, "message.created", "", live_event(1))
    (batch,) = await read_on(connection, 2)
    assert [frame["type"] for frame in batch] == ["pong", "message.created"]


async def test_a_signal_does_not_overtake_the_log_that_is_read() -> None:
    log = Log(length=3)
    connection = connected(log)
    subscription = connection.sessions["sess_1"].subscription
    log.may_be_read.clear()
    connection.outgoing.put(subscription.catch_up)
    batch = asyncio.ensure_future(connection.outgoing.batch())
    await asyncio.sleep(0)
    subscription.frame("resp_1", '{"type":"usage.delta","event_id":"1","timestamp":1}')
    log.may_be_read.set()
    frames = [json.loads(outgoing.text) for outgoing in await batch or []]
    assert [frame["type"] for frame in frames] == [*["message.created"] * 3, "usage.delta"]


async def test_frames_of_a_held_session_wait_and_others_do_not() -> None:
    connection = connected(Log(length=0))
    outgoing = connection.outgoing

    async def texts() -> list[str]:
        async with asyncio.timeout(5):
            batch = await outgoing.batch()
        return [] if batch is None else [frame.text for frame in batch]

    outgoing.emit(Outgoing("before", "sess_1"))
    with outgoing.held("sess_1"):
        for text, session_id in (("held", "sess_1"), ("other", "sess_2"), ("held too", "sess_1")):
            outgoing.send(Outgoing(text, session_id))
        connection.send_dialect_frame("reply")
        connection.close(1012)
        assert await texts() == ["before", "other", "reply"]
        ended = asyncio.ensure_future(texts())
        await asyncio.sleep(0)
        assert not ended.done()
    outgoing.send(Outgoing("after", "sess_1"))
    assert await ended == ["held", "held too", "after"]
    assert await texts() == []
    assert outgoing.pending_bytes == 0


async def test_a_held_session_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outgoing_queue, "BATCH_BYTES", 5000)
    log = Log(length=10 * PAGE)
    connection = connected(log)
    outgoing = connection.outgoing
    outgoing.put(connection.sessions["sess_1"].subscription.catch_up)
    with outgoing.held("sess_1"):
        reading = asyncio.ensure_future(read_on(connection, log.length))
        for _ in range(200):
            await asyncio.sleep(0)
        assert 5000 <= outgoing.pending_bytes < 2 * 5000
        assert not reading.done()
    frames = [frame for batch in await reading for frame in batch]
    assert [frame["seq"] for frame in frames] == list(range(1, log.length + 1))
