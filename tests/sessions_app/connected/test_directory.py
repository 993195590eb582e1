"""The lookup of a daemon while daemons come and go."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from agents_app import connections
from agents_app.runtime.agent_run import AgentError
from sessions_app.connected.directory import ConnectedAgents

if TYPE_CHECKING:
    from agents_app.selectors import AgentSpec

# The lookup runs on a database thread.
pytestmark = pytest.mark.django_db

SPEC = cast("AgentSpec", SimpleNamespace(id="agent_1", name="helper"))


def daemon() -> Any:
    """Return a registered daemon without answers, as the directory knows it."""
    return SimpleNamespace(agent_id=SPEC.id, has_room=True, is_gone=False, answers={}, row=None)


@pytest.mark.asyncio
async def test_a_daemon_that_registers_during_the_lookup_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    directory, late = ConnectedAgents("process_1"), daemon()

    def registers_meanwhile(_agent_id: str) -> list[object]:
        directory.admit(late)
        return []

    monkeypatch.setattr(connections, "connections_of", registers_meanwhile)
    assert await directory.find(SPEC, stays=False) is late


@pytest.mark.asyncio
async def test_a_daemon_that_leaves_during_the_lookup_is_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    directory, other = ConnectedAgents("process_1"), daemon()
    other.answers = {"turn_1": object()}
    directory.admit(other)

    def leaves_meanwhile(_agent_id: str) -> list[object]:
        other.has_room, other.is_gone = False, True
        return []

    monkeypatch.setattr(connections, "connections_of", leaves_meanwhile)
    with pytest.raises(AgentError) as caught:
        await directory.find(SPEC, stays=False)
    assert caught.value.code == "agent_offline"
