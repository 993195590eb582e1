"""Reads of agents: every other room gets an AgentSpec from here, never a row.

The law: `get_agent` and `list_agents` ask who is looking; `get_spec` does not, because the id comes
from a row to which access was checked before.
"""

import time
import unicodedata
from typing import Any

import msgspec
from django.db.models import Q, QuerySet
from django.db.models.functions import Lower
from django.db.models.signals import post_delete, post_save

from agents_app.models import NAME_PATTERN, Agent

SPEC_SECONDS = 5.0
"""How long `get_spec` trusts what it read. A save or delete in this process forgets the agent at
once (Django signals); another process sees the change after at most this time."""


class AgentSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a run needs to know of an agent."""

    id: str
    name: str
    description: str = ""
    kind: str = "hosted"
    provider: str = "scripted"
    model: str = ""
    instructions: str = ""
    options: dict[str, Any] = {}
    tools: tuple[str, ...] = ()
    is_public: bool = False
    is_enabled: bool = True
    owner_id: int | None = None
    trigger: str = "mention"
    max_steps: int = 10
    created_at: int = 0
    """Seconds since 1970."""


class AgentNotFoundError(LookupError):
    """There is no such agent for this viewer; the same whether it exists or not."""


_specs: dict[str, tuple[float, AgentSpec]] = {}


def get_agent(name: str, *, viewer: Any) -> AgentSpec:
    """Return the enabled agent of that name, whatever the case of its letters.

    `viewer` is a user, an AnonymousUser or None. Raises AgentNotFoundError when there is none that
    the viewer may use.
    """
    folded = unicodedata.normalize("NFKC", name).casefold()
    if NAME_PATTERN.fullmatch(folded):
        named = _visible(viewer).annotate(folded_name=Lower("name"))
        agent = named.filter(folded_name=folded).first()
        if agent is not None:
            return _spec(agent)
    raise AgentNotFoundError(name)


def list_agents(viewer: Any) -> list[AgentSpec]:
    """Return the enabled agents that the viewer may use, by name."""
    return [_spec(agent) for agent in _visible(viewer).order_by(Lower("name"))]


def get_spec(agent_id: str) -> AgentSpec:
    """Return an agent by id, enabled or not, at most SPEC_SECONDS old.

    Raises AgentNotFoundError.
    """
    known = _specs.get(agent_id)
    if known is not None and time.monotonic() < known[0]:
        return known[1]
    agent = Agent.objects.filter(pk=agent_id).first()
    if agent is None:
        _specs.pop(agent_id, None)
        raise AgentNotFoundError(agent_id)
    spec = _spec(agent)
    _specs[agent_id] = (time.monotonic() + SPEC_SECONDS, spec)
    return spec


def remembered(agent_id: str) -> AgentSpec | None:
    """Return what `get_spec` would return, if it needs no database for it."""
    known = _specs.get(agent_id)
    return known[1] if known is not None and time.monotonic() < known[0] else None


def connect_cache() -> None:
    """Make changes in this process forget what `get_spec` remembers."""
    post_save.connect(_forget, sender=Agent, dispatch_uid="agents_app.selectors")
    post_delete.connect(_forget, sender=Agent, dispatch_uid="agents_app.selectors")


def _forget(instance: Agent, **_kwargs: Any) -> None:
    _specs.pop(instance.pk, None)


def _visible(viewer: Any) -> QuerySet[Agent]:
    agents = Agent.objects.filter(is_enabled=True)
    if viewer is None or not viewer.is_authenticated:
        return agents.filter(is_public=True)
    if viewer.is_staff:
        return agents
    return agents.filter(Q(is_public=True) | Q(owner=viewer))


def _spec(agent: Agent) -> AgentSpec:
    return AgentSpec(
        id=agent.id,
        name=agent.name,
        description=agent.description,
        kind=agent.kind,
        provider=agent.provider,
        model=agent.model,
        instructions=agent.instructions,
        options=agent.options,
        tools=tuple(agent.tools),
        is_public=agent.is_public,
        is_enabled=agent.is_enabled,
        owner_id=agent.owner_id,
        trigger=agent.trigger,
        max_steps=agent.max_steps,
        created_at=int(agent.created_at.timestamp()),
    )
