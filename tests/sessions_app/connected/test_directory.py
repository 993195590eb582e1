"""The lookup of a daemon while daemons come and go."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from agents_app import connections
from agents_app.runtime.agent_run import AgentError, DaemonElsewhere
from sessions_app.connected.directory import FULL_SECONDS, ConnectedAgents

if TYPE_CHECKING:
    from agents_app.selectors import AgentSpec

# The lookup runs on a database thread.
pytestmark = pytest.mark.django_db

SPEC = cast("AgentSpec", SimpleNamespace(id="agent_1", name="helper"))


def daemon() -> Any:
    """Return a registered daemon without answers, as the directory knows it."""
    return SimpleNamespace(agent_id=SPEC.id, has_room=True, is_gone=False, answers={}, row=None)


def listed_as(monkeypatch: pytest.MonkeyPatch, *daemons: tuple[str, int]) -> None:
    """Let the rows list daemons with their process and answers, the least busy first."""
    rows = [SimpleNamespace(process=process, answers=answers) for process, answers in daemons]
    monkeypatch.setattr(connections, "connections_of", lambda _agent_id: rows)


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
@pytest.mark.parametrize(
    ("here", "elsewhere", "asked"),
    [
        (2, [("process_2", 1)], "process_2"),
        (1, [("process_2", 1)], "here"),
        (2, [], "here"),
        (2, [("process_3", 0), ("process_2", 1)], "process_3"),
        (None, [("process_2", 3)], "process_2"),
    ],
)
async def test_the_least_busy_daemon_of_all_processes_is_asked(
    monkeypatch: pytest.MonkeyPatch,
    here: int | None,
    elsewhere: list[tuple[str, int]],
    asked: str,
) -> None:
    directory = ConnectedAgents("process_1")
    if here is not None:
        own = daemon()
        own.answers = dict.fromkeys(range(here), object())
        directory.admit(own)
    listed_as(monkeypatch, *elsewhere)
    places = await asyncio.gather(directory.find(SPEC, stays=False), return_exceptions=True)
    assert [getattr(place, "process", "here") for place in places] == [asked]


@pytest.mark.asyncio
async def test_a_process_that_did_not_claim_an_answer_is_not_offered_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    directory = ConnectedAgents("process_1")
    listed_as(monkeypatch, ("process_2", 0), ("process_3", 1))
    with pytest.raises(DaemonElsewhere) as other:
        await directory.find(SPEC, stays=True, avoids="process_2")
    assert other.value.process == "process_3"
    listed_as(monkeypatch, ("process_2", 0))
    with pytest.raises(AgentError) as caught:
        await directory.find(SPEC, stays=True, avoids="process_2")
    # It is connected, and its process may be well again soon.
    assert (caught.value.code, caught.value.retry_after) == ("rate_limit_exceeded", FULL_SECONDS)
    listed_as(monkeypatch)
    with pytest.raises(AgentError) as caught:
        await directory.find(SPEC, stays=True, avoids="process_2")
    assert caught.value.code == "agent_offline"


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
