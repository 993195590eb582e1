"""A connection says a long log in pieces, and outlives a database that is away for a moment."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import OperationalError
from django.utils import timezone

import uamp
from chat_app.selectors import LoggedEvent
from sessions_app import auth, peer
from sessions_app.feed import PAGE, RunningText
from sessions_app.peer import BATCH_FRAMES, Peer
from sessions_app.selectors import OpenSession

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest


@dataclass
class Log:
    """A feed.Source: a chat of messages and one running answer; it fails as often as it is told."""

    length: int
    failures: int = 0

    async def events_after(self, chat_id: str, after: int) -> Sequence[LoggedEvent]:
        """See feed.Source."""
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

    async def running(self, chat_id: str) -> Sequence[RunningText]:
        """See feed.Source."""
        del chat_id
        return [RunningText("resp_1", "echo", "so far", "")]


def connected(log: Log) -> Peer:
    """Return a connection with one session that follows a chat from its beginning."""

    async def follow(chat_id: str) -> None:
        del chat_id

    connection = Peer(
        principal=auth.anonymous(), transport="websocket", source=log, origin="", follow=follow
    )
    session = OpenSession(
        id="sess_1",
        principal=connection.principal,
        chat_id="chat_1",
        chat_kind="group",
        chat_scoped=True,
        epoch="epoch",
        last_seq=log.length,
        opened_seq=0,
        agent_id=None,
        agent_name=None,
        config=uamp.SessionConfig(),
        created_at=timezone.now(),
        transport="websocket",
    )
    connection.attach(session, cursor=0)
    return connection


async def read_on(connection: Peer, frames: int) -> list[list[dict[str, object]]]:
    """Return the batches until so many frames came."""
    batches: list[list[dict[str, object]]] = []
    async with asyncio.timeout(5):
        while sum(map(len, batches)) < frames:
            batch = await connection.batch()
            assert batch is not None
            batches.append([json.loads(outgoing.text) for outgoing in batch])
    return batches


async def test_a_long_log_is_not_read_faster_than_it_is_sent() -> None:
    log = Log(length=10 * PAGE + 3)
    connection = connected(log)
    feed = connection.sessions["sess_1"].feed
    connection.put(feed.catch_up)
    connection.put(feed.catch_up_running)
    batches = await read_on(connection, log.length + 2)
    assert max(map(len, batches)) <= PAGE + BATCH_FRAMES
    frames = [frame for batch in batches for frame in batch]
    assert [frame.get("seq") for frame in frames[: log.length]] == list(range(1, log.length + 1))
    assert [frame["type"] for frame in frames[log.length :]] == [
        "response.created",
        "response.delta",
    ]


async def test_who_fell_behind_is_not_told_everything_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(peer, "QUEUE_ITEMS", 2)
    log = Log(length=10 * PAGE)
    connection = connected(log)
    feed = connection.sessions["sess_1"].feed
    for _ in range(4):
        connection.put(feed.repair)
    batches = await read_on(connection, log.length + 2)
    assert max(map(len, batches)) <= PAGE + BATCH_FRAMES
    assert batches[-1][-1]["type"] == "response.delta"


async def test_a_database_that_is_away_for_a_moment_does_not_end_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(peer, "READ_AGAIN_SECONDS", 0.01)
    log = Log(length=3, failures=2)
    connection = connected(log)
    connection.put(connection.sessions["sess_1"].feed.catch_up)
    (first, *_) = await read_on(connection, 3)
    assert [frame["seq"] for frame in first[:3]] == [1, 2, 3]
