"""Connections of daemons as rows: those of processes that died are deleted, in parts."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents_app import connections
from agents_app.models import Agent, AgentConnection, AgentKind, ProcessLease
from tests import factories

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.django_db


def connected(process: str, count: int) -> list[Agent]:
    """Return agents of which each has a daemon in a process."""
    agents = [
        factories.agent(f"{process}-{number}", kind=AgentKind.CONNECTED, options={})
        for number in range(count)
    ]
    for agent in agents:
        factories.daemon(process, agent.pk, connection=process, seconds=60)
    return agents


def end_lease(process: str) -> None:
    """Let a process be silent for too long."""
    ended = timezone.now() - timedelta(seconds=1)
    ProcessLease.objects.filter(pk=process).update(lease_until=ended)


def online(agents: Sequence[Agent]) -> int:
    """Return the number of these agents that have a daemon."""
    return len(connections.connected([agent.pk for agent in agents]))


def test_the_connections_of_a_dead_process_are_deleted_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "DELETED_AT_ONCE", 2)
    dead, living = connected("dead", 5), connected("living", 2)
    # One of them has come back to the other process.
    factories.daemon("living", dead[0].pk, connection="again", seconds=60)
    end_lease("dead")
    connections.sweep()
    assert set(AgentConnection.objects.values_list("process", flat=True)) == {"living"}
    assert list(ProcessLease.objects.values_list("pk", flat=True)) == ["living"]
    assert (online(dead), online(dead[:1]), online(living)) == (1, 1, 2)


def test_a_sweep_sends_no_more_writes_for_more_agents() -> None:
    few, many = (_writes_of_a_sweep(process, count) for process, count in (("a", 2), ("b", 20)))
    assert few == many


def _writes_of_a_sweep(process: str, count: int) -> int:
    connected(process, count)
    end_lease(process)
    with CaptureQueriesContext(connection) as queries:
        connections.sweep()
    return sum(query["sql"].startswith(("UPDATE", "DELETE")) for query in queries)


def test_a_process_whose_lease_was_renewed_keeps_its_connections() -> None:
    agents = connected("late", 1)
    end_lease("late")
    connections.renew("late", seconds=60)
    connections.sweep()
    assert online(agents) == AgentConnection.objects.count() == 1


def test_a_registration_renews_a_lease_of_which_half_is_over() -> None:
    (agent,) = connected("busy", 1)
    soon = timezone.now() + timedelta(seconds=5)
    ProcessLease.objects.update(lease_until=soon)
    factories.daemon("busy", agent.pk, connection="other", seconds=60)
    assert ProcessLease.objects.get().lease_until > soon


def test_agents_that_register_together_take_as_many_queries_as_one(
    settings: Any,
) -> None:
    settings.UAMP_DAEMONS_PER_AGENT = 1000
    agents = [factories.agent(str(number), kind=AgentKind.CONNECTED) for number in range(20)]
    connections.renew("p", seconds=60)
    counts = []
    for listed in (agents[:1], agents[1:]):
        opened = [connections.NewConnection(agent.pk, "socket") for agent in listed]
        with CaptureQueriesContext(connection) as queries:
            keys = connections.open_connections("p", opened, seconds=60)
        counts.append(len(queries))
        rows = AgentConnection.objects.in_bulk([key for key in keys if isinstance(key, int)])
        assert [rows[key].agent_id for key in keys] == [agent.pk for agent in listed]
    assert counts[0] == counts[1]
    assert online(agents) == 20


def test_an_agent_that_is_refused_does_not_keep_others_from_registering(settings: Any) -> None:
    settings.UAMP_DAEMONS_PER_AGENT = 2
    (agent,) = connected("first", 1)
    other = factories.agent("other", kind=AgentKind.CONNECTED)
    rows = [
        (agent.pk, "first"),
        ("agent_gone", "second"),
        (agent.pk, "second"),
        (agent.pk, "second"),
        (agent.pk, "third"),
        (other.pk, "third"),
    ]
    results = connections.open_connections(
        "first", [connections.NewConnection(*row) for row in rows]
    )
    assert [type(result) for result in results] == [
        connections.AlreadyRegistered,
        connections.NameNotYours,
        int,
        connections.AlreadyRegistered,
        connections.TooManyDaemons,
        int,
    ]
    assert sorted(AgentConnection.objects.values_list("agent", "connection")) == sorted(
        [(agent.pk, "first"), (agent.pk, "second"), (other.pk, "third")]
    )
