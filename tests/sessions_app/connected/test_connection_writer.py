"""Connections that are written together, and those whose caller is gone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from agents_app import connections
from agents_app.models import AgentConnection, AgentKind
from sessions_app import database
from sessions_app.connected.connection_writer import ConnectionWriter
from tests import factories

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_app.connections import NewConnection

pytestmark = pytest.mark.usefixtures("database_threads")


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the number of connections that each transaction writes."""
    sizes: list[int] = []
    write = connections.open_connections

    def noted(
        process: str, opened: Sequence[NewConnection]
    ) -> list[int | connections.CannotRegister]:
        sizes.append(len(opened))
        return write(process, opened)

    monkeypatch.setattr(connections, "open_connections", noted)
    return sizes


def make_agents(count: int) -> list[str]:
    agents = [factories.agent(f"far-{number}", kind=AgentKind.CONNECTED) for number in range(count)]
    return [agent.pk for agent in agents]


async def test_connections_that_wait_are_written_together(batches: list[int]) -> None:
    agents = await database.run(make_agents, 100)
    writer = ConnectionWriter("process")
    new = [connections.NewConnection(agent, "socket") for agent in agents]
    writes = [
        writer.write(connection)
        for connection in (*new, connections.NewConnection("gone", "socket"))
    ]
    *keys, refused = await asyncio.gather(*writes, return_exceptions=True)
    await writer.stop()
    assert isinstance(refused, connections.NameNotYours)
    assert batches == [64, 37]

    def agents_of_rows() -> list[str]:
        rows = AgentConnection.objects.in_bulk(keys)
        return [rows[key].agent_id for key in keys]

    assert await database.run(agents_of_rows) == agents


async def test_the_connection_of_a_caller_that_was_cancelled_is_closed(batches: list[int]) -> None:
    first, second = await database.run(make_agents, 2)
    writer = ConnectionWriter("process")
    gone = asyncio.create_task(writer.write(connections.NewConnection(first, "gone")))
    stays = asyncio.create_task(writer.write(connections.NewConnection(second, "stays")))
    await asyncio.sleep(0)
    gone.cancel()
    async with asyncio.timeout(60):
        key = await stays
        await writer.stop()
    assert batches == [2]
    left = await database.run(lambda: list(AgentConnection.objects.values_list("pk", flat=True)))
    assert left == [key]


async def test_an_error_reaches_all_callers(
    monkeypatch: pytest.MonkeyPatch, batches: list[int]
) -> None:
    def fails(*_: object) -> None:
        raise LookupError

    writer = ConnectionWriter("process")
    monkeypatch.setattr(connections, "open_connections", fails)
    writes = [writer.write(connections.NewConnection("agent", str(n))) for n in range(3)]
    errors = await asyncio.gather(*writes, return_exceptions=True)
    assert [type(error) for error in errors] == [LookupError] * 3
    await writer.stop()
    assert batches == []
