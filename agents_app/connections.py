"""The daemons of connected agents as rows: who registered, and in which process. Synchronous.

A process has a lease that it renews; the connections of one whose lease ended are deleted. A
response whose agent is connected runs in the process that holds the socket, which is found here.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from agents_app.models import Agent, AgentConnection, AgentKind, ProcessLease
from agents_app.models.agents import presence_changed
from agents_app.selectors import AgentSpec, agent_id_named, get_spec

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from django.db.models import QuerySet

    from agents_app.rest.rights import Rights
    from uamp.types.capabilities import Capabilities

CONNECT = "agents:connect"
"""The scope of a credential with which a daemon registers agents of its person."""
MAKE = "agents:write"
"""The scope that it needs as well to register a name that is free."""
DELETED_AT_ONCE: Final = 200
"""Connections that one transaction deletes. It locks their agents, which daemons register again."""


class NameNotYours(Exception):
    """The name is another agent's or person's, or the credential is not for it."""


class TooManyConnectedAgents(Exception):
    """The person has UAMP_CONNECTED_AGENTS connected agents."""


class TooManyDaemons(Exception):
    """UAMP_DAEMONS_PER_AGENT daemons are connected for the agent."""


class OpenConnection(NamedTuple):
    """A connection that takes answers: the process that holds it, and how many it works on."""

    process: str
    answers: int


# --- Names ---


def claim(name: str, *, owner_id: int, rights: Rights) -> AgentSpec:
    """Return the connected agent of a name or id that a person may register; a free name is made.

    It is theirs and private. Raises NameNotYours, TooManyConnectedAgents, and ValidationError for
    a name that no agent can have.
    """
    found = agent_id_named(name)
    if found is None:
        try:
            return _made(name, owner_id=owner_id, rights=rights)
        except (IntegrityError, ValidationError):
            # Another daemon may have taken the name at the same time: of this person, or not.
            found = agent_id_named(name)
            if found is None:
                raise
    agent = Agent.objects.filter(
        pk=found, owner_id=owner_id, kind=AgentKind.CONNECTED, is_enabled=True
    ).first()
    if agent is None or not rights.may_ask(agent.pk):
        raise NameNotYours(name)
    return get_spec(agent.pk)


def _made(name: str, *, owner_id: int, rights: Rights) -> AgentSpec:
    if rights.agents is not None or not rights.has(MAKE):
        raise NameNotYours(name)
    agent = Agent(name=name, kind=AgentKind.CONNECTED, owner_id=owner_id)
    agent.full_clean(exclude=["owner"])
    if User.objects.filter(username__iexact=name).exclude(pk=owner_id).exists():
        # In a chat it would be taken for that person.
        raise NameNotYours(name)
    with transaction.atomic():
        # The daemons of one person make agents one after another: none is beyond the limit.
        User.objects.select_for_update(no_key=True).filter(pk=owner_id).first()
        own = Agent.objects.filter(owner_id=owner_id, kind=AgentKind.CONNECTED)
        if own.count() >= settings.UAMP_CONNECTED_AGENTS:
            raise TooManyConnectedAgents
        agent.save(force_insert=True)
    return get_spec(agent.pk)


def problem_of(error: ValidationError) -> str:
    """Return in one sentence why no agent can have a name."""
    return " ".join(error.messages)[:500]


# --- Connections ---


def renew(process: str, *, seconds: float) -> None:
    """Renew the lease of a process that holds sockets of daemons, where it was not deleted."""
    until = timezone.now() + timedelta(seconds=seconds)
    ProcessLease.objects.filter(pk=process).update(lease_until=until)


def open_connection(
    process: str,
    agent_id: str,
    *,
    connection: str,
    capabilities: Capabilities | None,
    seconds: float,
) -> int:
    """Write that a daemon registered an agent on a socket; return the key of the row.

    The lease of the process is renewed where half of it is over: while many daemons register, its
    periodic renewal may come late. Raises TooManyDaemons, NameNotYours for an agent that was
    deleted meanwhile, and IntegrityError where the socket has the agent already.
    """
    with transaction.atomic():
        agent = Agent.objects.select_for_update(no_key=True).filter(pk=agent_id).first()
        if agent is None:
            raise NameNotYours(agent_id)
        now = timezone.now()
        live = agent.connections.filter(process__lease_until__gt=now)
        if live.count() >= settings.UAMP_DAEMONS_PER_AGENT:
            raise TooManyDaemons
        half = now + timedelta(seconds=seconds / 2)
        if not ProcessLease.objects.filter(pk=process, lease_until__gt=half).exists():
            until = now + timedelta(seconds=seconds)
            ProcessLease.objects.update_or_create(pk=process, defaults={"lease_until": until})
        row = AgentConnection.objects.create(
            agent=agent,
            process_id=process,
            connection=connection,
            capabilities=None if capabilities is None else _plain(capabilities),
        )
        _show([agent], is_connected=True)
    return row.pk


def announce(key: int, capabilities: Capabilities) -> None:
    """Write what the daemon of a connection can do."""
    AgentConnection.objects.filter(pk=key).update(capabilities=_plain(capabilities))


def _plain(capabilities: Capabilities) -> Any:
    return msgspec.json.decode(msgspec.json.encode(capabilities))


def close_connections(keys: Collection[int]) -> None:
    """Delete connections of sockets that closed, or of agents that were unregistered."""
    with transaction.atomic():
        rows = AgentConnection.objects.filter(pk__in=list(keys))
        agents = set(rows.values_list("agent_id", flat=True))
        locked = _locked(agents)
        rows.delete()
        _refresh(locked)


def close_process(process: str) -> None:
    """Delete all connections of a process, which ends."""
    _delete_connections(AgentConnection.objects.filter(process=process))
    ProcessLease.objects.filter(pk=process).delete()


def sweep() -> None:
    """Delete the connections of processes whose lease ended."""
    now = timezone.now()
    dead = list(ProcessLease.objects.filter(lease_until__lte=now).values_list("pk", flat=True))
    if dead:
        # A process that renews its lease meanwhile keeps what is left, and writes the rest anew.
        _delete_connections(
            AgentConnection.objects.filter(process__in=dead, process__lease_until__lte=now)
        )
        ProcessLease.objects.filter(pk__in=dead, lease_until__lte=now).delete()


def _delete_connections(rows: QuerySet[AgentConnection]) -> None:
    while keys := list(rows.order_by("pk").values_list("pk", flat=True)[:DELETED_AT_ONCE]):
        close_connections(keys)


def _locked(agent_ids: Collection[str]) -> list[Agent]:
    agents = Agent.objects.select_for_update(no_key=True).filter(pk__in=agent_ids)
    return list(agents.order_by("pk"))


def _refresh(agents: Collection[Agent]) -> None:
    """Write of locked agents whether a daemon is left."""
    now = timezone.now()
    left = AgentConnection.objects.filter(agent__in=agents, process__lease_until__gt=now)
    connected = set(left.values_list("agent_id", flat=True))
    for is_connected in (True, False):
        _show(
            [agent for agent in agents if (agent.pk in connected) == is_connected],
            is_connected=is_connected,
        )


def _show(agents: Collection[Agent], *, is_connected: bool) -> None:
    changed = [agent for agent in agents if agent.is_connected != is_connected]
    if not changed:
        return
    Agent.objects.filter(pk__in=[agent.pk for agent in changed]).update(is_connected=is_connected)
    for agent in changed:
        was_online, agent.is_connected = agent.is_online, is_connected
        if agent.is_online != was_online:
            presence_changed.send(sender=Agent, agent=agent)


def owners_of(process: str) -> dict[int, int | None]:
    """Return whose the agents of a process's connections are now, by the keys of the rows.

    None for an agent that is switched off or connected no longer. A connection is missing that was
    deleted, with its agent or with a lease that had ended.
    """
    rows = AgentConnection.objects.filter(process=process).values_list(
        "pk", "agent__owner_id", "agent__kind", "agent__is_enabled"
    )
    return {
        pk: owner if is_enabled and kind == AgentKind.CONNECTED else None
        for pk, owner, kind, is_enabled in rows
    }


def begin_closing(process: str) -> None:
    """Have no more answers begun at the daemons of a process, which is being drained."""
    AgentConnection.objects.filter(process=process).update(is_closing=True)


def count_answers(answers: Mapping[int, int]) -> None:
    """Write how many answers the daemons of connections work on, by the keys of the rows."""
    rows = [AgentConnection(pk=pk, answers=count) for pk, count in answers.items()]
    AgentConnection.objects.bulk_update(rows, ["answers"])


def connections_of(agent_id: str) -> list[OpenConnection]:
    """Return the connections of an agent that take answers, the least busy ones first."""
    rows = AgentConnection.objects.filter(
        agent=agent_id, is_closing=False, process__lease_until__gt=timezone.now()
    )
    listed = rows.order_by("answers", "-pk").values_list("process_id", "answers")
    return [OpenConnection(*row) for row in listed]


def capabilities_of(agent_id: str) -> Any:
    """Return what the daemon that registered last announced, as plain values; None for nothing."""
    rows = AgentConnection.objects.filter(agent=agent_id, capabilities__isnull=False)
    return rows.order_by("-pk").values_list("capabilities", flat=True).first()


def connected(agent_ids: Collection[str]) -> set[str]:
    """Return which of these agents have a daemon."""
    rows = Agent.objects.filter(pk__in=list(agent_ids), is_connected=True)
    return set(rows.values_list("pk", flat=True))
