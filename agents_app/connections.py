"""Connections of daemons: which agents are registered, and in which process. Synchronous.

A process renews its lease every second (`sessions_app.process.heartbeat`), by the clock of the
database; when the lease expires, its connections are deleted. A response of a connected agent runs
in the process that holds the daemon's socket; this module finds that process.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from agents_app.group_names import is_name_of_another
from agents_app.models import Agent, AgentConnection, AgentKind, ProcessLease
from agents_app.models.agents import presence_changed
from agents_app.selectors import AgentSpec, agent_named, get_spec, remembered_spec

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from django.db.models import QuerySet

    from agents_app.rest.rights import Rights
    from uamp.types.capabilities import Capabilities

CONNECT = "agents:connect"
"""The scope that lets a daemon register its owner's agents."""
MAKE = "agents:write"
"""The scope that is also needed to register an unused name."""
LEASE_SECONDS: Final = 3.8
"""How long a process counts as alive after it last renewed its lease."""
PRESENCE_FIELDS: Final = ("name", "kind", "is_enabled", "is_connected", "retry_at")
"""The fields that `presence_changed` and its receivers read."""
DELETED_AT_ONCE: Final = 200
"""Connections deleted per transaction, which locks their agents against new registrations."""


class CannotRegister(Exception):
    """A daemon cannot be registered."""


class NameNotYours(CannotRegister):
    """The name belongs to another agent or person, or the credential does not cover it."""


class TooManyConnectedAgents(Exception):
    """The person already has UAMP_CONNECTED_AGENTS connected agents."""


class TooManyDaemons(CannotRegister):
    """The agent already has UAMP_DAEMONS_PER_AGENT daemons."""


class AlreadyRegistered(CannotRegister):
    """The agent is registered on the same socket."""


class NewConnection(NamedTuple):
    """An agent that a daemon registers on the socket `connection`."""

    agent_id: str
    connection: str
    capabilities: Capabilities | None = None
    address: str = ""
    api_key_id: int | None = None


class OpenConnection(NamedTuple):
    """A connection that accepts responses: its process, and how many responses it is working on."""

    process: str
    answers: int


# --- Names ---


def claim(name: str, *, owner_id: int, rights: Rights) -> AgentSpec:
    """Return the connected agent that a person may register by name or id; create it if unused.

    A new agent is private and belongs to the person. Raises NameNotYours, TooManyConnectedAgents,
    and ValidationError for an invalid name.
    """
    agent = agent_named(name)
    if agent is None:
        try:
            return _made(name, owner_id=owner_id, rights=rights)
        except (IntegrityError, ValidationError):
            # Another daemon, perhaps of this person, may have taken the name at the same time.
            agent = agent_named(name)
            if agent is None:
                raise
    is_theirs = agent.owner_id == owner_id and agent.kind == AgentKind.CONNECTED
    if not (is_theirs and agent.is_enabled and rights.may_ask(agent.pk)):
        raise NameNotYours(name)
    return remembered_spec(agent)


def _made(name: str, *, owner_id: int, rights: Rights) -> AgentSpec:
    if rights.agents is not None or not rights.has(MAKE):
        raise NameNotYours(name)
    agent = Agent(name=name, kind=AgentKind.CONNECTED, owner_id=owner_id)
    if is_name_of_another(name, owner_id):
        raise NameNotYours(name)
    agent.full_clean(exclude=["owner"])
    with transaction.atomic():
        # The lock serializes creation by one person's daemons, so that none exceeds the limit.
        User.objects.select_for_update(no_key=True).filter(pk=owner_id).first()
        connected_agents = Agent.objects.filter(owner_id=owner_id, kind=AgentKind.CONNECTED)
        if connected_agents.count() >= settings.UAMP_CONNECTED_AGENTS:
            raise TooManyConnectedAgents
        agent.save(force_insert=True)
    return get_spec(agent.pk)


def problem_of(error: ValidationError) -> str:
    """Return why a name is invalid, as one line of text."""
    return " ".join(error.messages)[:500]


# --- Connections ---


def renew(process: str, *, seconds: float = LEASE_SECONDS) -> None:
    """Renew the lease of a process, or write the first one."""
    until = Now() + timedelta(seconds=seconds)
    if not ProcessLease.objects.filter(pk=process).update(lease_until=until):
        with suppress(IntegrityError):  # a registration wrote it just now
            ProcessLease.objects.create(pk=process, lease_until=until)


def dead() -> QuerySet[ProcessLease]:
    """Return the leases that have expired."""
    return ProcessLease.objects.filter(lease_until__lte=Now())


def dead_processes() -> list[str]:
    """Return the processes whose lease has expired."""
    return list(dead().values_list("pk", flat=True))


def refused_by_daemons(
    agent_id: str, options: Collection[str], *, with_tools: bool = False
) -> list[str]:
    """Return the client options that some daemon of an agent ignores; none without a daemon.

    Any daemon that accepts responses may get the next one. Daemons list the options that they keep
    to in `extensions.options` of their capabilities. With `with_tools`, the result includes `tools`
    if one of them announces that it does not call any.
    """
    rows = list(_accepting(agent_id).values_list("capabilities", flat=True))
    refused = set[str]().union(*(set(options) - _options_kept(row) for row in rows))
    if with_tools and not all(map(_calls_tools, rows)):
        refused.add("tools")
    return sorted(refused)


def _calls_tools(capabilities: object) -> bool:
    return _object_in(capabilities, "tools").get("supports_tools") is not False


def _options_kept(capabilities: object) -> set[str]:
    options = _object_in(capabilities, "extensions").get("options")
    return (
        {name for name in options if isinstance(name, str)} if isinstance(options, list) else set()
    )


def _object_in(capabilities: object, name: str) -> dict[str, Any]:
    """Return an object in announced capabilities, or an empty one."""
    member = capabilities.get(name) if isinstance(capabilities, dict) else None
    return member if isinstance(member, dict) else {}


def open_connections(
    process: str, opened: Sequence[NewConnection], *, seconds: float = LEASE_SECONDS
) -> list[int | CannotRegister]:
    """Record that daemons registered agents on sockets of a process, in one transaction.

    Returns the key of each row or the reason for a refusal: TooManyDaemons, AlreadyRegistered, or
    NameNotYours if the agent has been deleted. Renews the process's lease once half of it has
    passed: its heartbeat may be late while many daemons register.
    """
    results: list[int | CannotRegister] = []
    with transaction.atomic():
        agents = {agent.pk: agent for agent in _locked({new.agent_id for new in opened})}
        _renew_half_over(process, seconds)
        sockets, live = _registered(agents)
        rows: list[AgentConnection] = []
        for new in opened:
            refused = _refusal_of(new, agents, sockets, live)
            if refused is not None:
                results.append(refused)
                continue
            sockets.add((new.connection, new.agent_id))
            live[new.agent_id] += 1
            results.append(len(rows))
            rows.append(
                AgentConnection(
                    agent_id=new.agent_id,
                    process_id=process,
                    connection=new.connection,
                    capabilities=None if new.capabilities is None else _plain(new.capabilities),
                    address=new.address[:45],
                    api_key_id=new.api_key_id,
                )
            )
        made = AgentConnection.objects.bulk_create(rows)
        _show([agents[pk] for pk in sorted({row.agent_id for row in rows})], is_connected=True)
    return [made[result].pk if isinstance(result, int) else result for result in results]


def _renew_half_over(process: str, seconds: float) -> None:
    half = Now() + timedelta(seconds=seconds / 2)
    if not ProcessLease.objects.filter(pk=process, lease_until__gt=half).exists():
        until = Now() + timedelta(seconds=seconds)
        ProcessLease.objects.update_or_create(pk=process, defaults={"lease_until": until})


def _registered(agents: Collection[str]) -> tuple[set[tuple[str, str]], Counter[str]]:
    """Return the sockets on which agents are registered, and how many daemons each one has."""
    is_live = Q(process__lease_until__gt=Now())
    rows = AgentConnection.objects.filter(agent__in=list(agents)).annotate(is_live=is_live)
    sockets, live = set[tuple[str, str]](), Counter[str]()
    for socket, agent_id, counts in rows.values_list("connection", "agent_id", "is_live"):
        sockets.add((socket, agent_id))
        live[agent_id] += counts
    return sockets, live


def _refusal_of(
    new: NewConnection,
    agents: Mapping[str, Agent],
    sockets: Collection[tuple[str, str]],
    live: Mapping[str, int],
) -> CannotRegister | None:
    if new.agent_id not in agents:
        return NameNotYours(new.agent_id)
    if (new.connection, new.agent_id) in sockets:
        return AlreadyRegistered(new.agent_id)
    if live.get(new.agent_id, 0) >= settings.UAMP_DAEMONS_PER_AGENT:
        return TooManyDaemons(new.agent_id)
    return None


def announce(key: int, capabilities: Capabilities) -> None:
    """Store the capabilities that the daemon of a connection announced."""
    AgentConnection.objects.filter(pk=key).update(capabilities=_plain(capabilities))


def change_key(keys: Collection[int], api_key_id: int | None) -> None:
    """Store the key that the daemon of these connections uses from now on."""
    AgentConnection.objects.filter(pk__in=list(keys)).update(api_key_id=api_key_id)


def _plain(capabilities: Capabilities) -> Any:
    return msgspec.json.decode(msgspec.json.encode(capabilities))


def close_connections(keys: Collection[int]) -> None:
    """Delete the connections of closed sockets or unregistered agents."""
    with transaction.atomic():
        rows = AgentConnection.objects.filter(pk__in=list(keys))
        agents = set(rows.values_list("agent_id", flat=True))
        locked = _locked(agents)
        rows.delete()
        _refresh(locked)


def disconnect(keys: Collection[int]) -> int:
    """Have the processes of connections end them; return how many were not being ended before.

    They get no new responses from now on.
    """
    rows = AgentConnection.objects.filter(pk__in=list(keys), disconnect_requested_at=None)
    return rows.update(disconnect_requested_at=timezone.now(), is_closing=True)


def disconnected(process: str) -> set[int]:
    """Return the connections that a process has to end."""
    rows = AgentConnection.objects.filter(process=process, disconnect_requested_at__isnull=False)
    return set(rows.values_list("pk", flat=True))


def close_process(process: str) -> None:
    """Delete all connections of a process that is shutting down."""
    _delete_connections(AgentConnection.objects.filter(process=process))
    ProcessLease.objects.filter(pk=process).delete()


def sweep() -> None:
    """Delete the connections of processes whose lease has expired."""
    if dead := dead_processes():
        # A process that renews its lease in the meantime keeps the remaining rows and restores the
        # rest.
        _delete_connections(
            AgentConnection.objects.filter(process__in=dead, process__lease_until__lte=Now())
        )
        ProcessLease.objects.filter(pk__in=dead, lease_until__lte=Now()).delete()


def _delete_connections(rows: QuerySet[AgentConnection]) -> None:
    while keys := list(rows.order_by("pk").values_list("pk", flat=True)[:DELETED_AT_ONCE]):
        close_connections(keys)


def _locked(agent_ids: Collection[str]) -> list[Agent]:
    agents = Agent.objects.select_for_update(no_key=True).filter(pk__in=agent_ids)
    return list(agents.order_by("pk").only(*PRESENCE_FIELDS))


def _refresh(agents: Collection[Agent]) -> None:
    """Update whether locked agents still have a daemon."""
    connections = AgentConnection.objects.filter(agent__in=agents, process__lease_until__gt=Now())
    connected = set(connections.values_list("agent_id", flat=True))
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
    were_online = {agent.pk: agent.is_online for agent in changed}
    for agent in changed:
        agent.is_connected = is_connected
    noticed = [agent for agent in changed if agent.is_online != were_online[agent.pk]]
    if noticed:
        presence_changed.send(sender=Agent, agents=noticed)


def owners_of(process: str) -> dict[int, int | None]:
    """Return the current owners of the agents connected to a process, by row key.

    The owner is None if the agent is switched off or is no longer a connected agent. Connections
    that were deleted, along with their agent or an expired lease, are missing.
    """
    rows = AgentConnection.objects.filter(process=process).values_list(
        "pk", "agent__owner_id", "agent__kind", "agent__is_enabled"
    )
    return {
        pk: owner if is_enabled and kind == AgentKind.CONNECTED else None
        for pk, owner, kind, is_enabled in rows
    }


def begin_closing(process: str) -> None:
    """Stop giving new responses to the daemons of a process that is being drained."""
    AgentConnection.objects.filter(process=process).update(is_closing=True)


def count_answers(answers: Mapping[int, int]) -> None:
    """Store how many responses each connection's daemon is working on, by row key."""
    rows = [AgentConnection(pk=pk, answers=count) for pk, count in answers.items()]
    AgentConnection.objects.bulk_update(rows, ["answers"])


def connections_of(agent_id: str) -> list[OpenConnection]:
    """Return an agent's connections that accept responses, least busy first."""
    listed = _accepting(agent_id).order_by("answers", "-pk").values_list("process_id", "answers")
    return [OpenConnection(*row) for row in listed]


def _accepting(agent_id: str) -> QuerySet[AgentConnection]:
    return AgentConnection.objects.filter(
        agent=agent_id, is_closing=False, process__lease_until__gt=Now()
    )


def open_daemons(limit: int) -> int:
    """Return the number of sockets on which daemons registered agents, counted up to `limit`."""
    rows = AgentConnection.objects.filter(process__lease_until__gt=Now()).order_by()
    return rows.values("process_id", "connection").distinct()[:limit].count()


def capabilities_of(agent_id: str) -> Any:
    """Return the announcement of the most recently registered daemon, as builtins, or None."""
    rows = AgentConnection.objects.filter(agent=agent_id, capabilities__isnull=False)
    return rows.order_by("-pk").values_list("capabilities", flat=True).first()


def connected(agent_ids: Collection[str]) -> set[str]:
    """Return those of these agents that have a daemon."""
    rows = Agent.objects.filter(pk__in=list(agent_ids), is_connected=True)
    return set(rows.values_list("pk", flat=True))
