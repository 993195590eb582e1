"""Connections in the database without a daemon here, because the answer of a write was lost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from django.db import OperationalError

from agents_app import connections
from agents_app.models import AgentConnection, AgentKind
from sessions_app import database
from sessions_app.connected.directory import ConnectedAgents
from tests import factories

pytestmark = pytest.mark.usefixtures("database_threads")


def connected_agent() -> str:
    """Create a connected agent and return its id."""
    return factories.agent("helper", kind=AgentKind.CONNECTED).pk


def daemon(agent_id: str) -> Any:
    """Return a daemon of an agent without an owner, as the directory knows it."""
    return SimpleNamespace(
        agent_id=agent_id,
        link=SimpleNamespace(origin="socket"),
        principal=SimpleNamespace(address="", api_key_id=None, user_id=None),
        capabilities=None,
        row=None,
        answers={},
        is_gone=False,
    )


async def write_without_answer(directory: ConnectedAgents, writes: Any) -> None:
    """Have a connection committed and the write fail for its caller."""
    write = connections.open_connections

    def lost(*values: Any) -> None:
        write(*values)
        raise OperationalError("the connection was lost")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "open_connections", lost)
        with pytest.raises(OperationalError):
            await directory.write(writes)


async def rows() -> list[int]:
    return await database.run(lambda: list(AgentConnection.objects.values_list("pk", flat=True)))


async def test_a_row_whose_daemon_was_refused_is_closed() -> None:
    directory = ConnectedAgents("process")
    refused = daemon(await database.run(connected_agent))
    await write_without_answer(directory, refused)
    assert refused.row is None
    (stray,) = await rows()
    # On the same socket, the agent counts as registered until then.
    with pytest.raises(connections.AlreadyRegistered):
        await directory.write(refused)
    # At first the row could be that of a daemon that is registering.
    assert await directory.disowned_daemons() == []
    assert await rows() == [stray]
    assert await directory.disowned_daemons() == []
    assert await rows() == []
    await directory.write(refused)
    assert await rows() == [refused.row]


async def test_a_connection_that_is_written_anew_without_an_answer_stays_registered() -> None:
    directory = ConnectedAgents("process")
    registered = daemon(await database.run(connected_agent))
    await directory.write(registered)
    directory.admit(registered)
    # Another process deleted it when this one seemed to be dead.
    await database.run(connections.close_connections, [registered.row])
    await write_without_answer(directory, registered)
    (stray,) = await rows()
    for _ in range(3):
        assert await directory.disowned_daemons() == []
    assert registered.row != stray
    assert await rows() == [registered.row]
    assert list(directory) == [registered]


async def test_a_daemon_that_takes_long_to_register_keeps_its_row() -> None:
    directory = ConnectedAgents("process")
    registering = daemon(await database.run(connected_agent))
    await write_without_answer(directory, registering)
    assert await directory.disowned_daemons() == []
    (registering.row,) = await rows()
    directory.admit(registering)
    assert await directory.disowned_daemons() == []
    assert await directory.disowned_daemons() == []
    assert await rows() == [registering.row]
