"""Reads of agents: every other app gets an AgentSpec from here, never a row.

`get_agent` and `list_agents` check what the viewer may see. `get_spec` does not: its ids come from
rows to which access has already been checked.
"""

import time
import unicodedata
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import msgspec
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.db.models import Exists, Q, QuerySet
from django.db.models.functions import Lower
from django.db.models.signals import post_delete, post_save

from agents_app import visitors
from agents_app.mcp.listing import SourceTool, resolved_names, tools_named
from agents_app.models import (
    AGENT_ID,
    NAME_PATTERN,
    Agent,
    AgentKind,
    ModelProvider,
    RemoteProtocol,
    ToolSource,
)
from agents_app.pricing import FREE, Pricing, read_pricing

SPEC_SECONDS = 5.0
"""How long `get_spec` caches a spec. A save or delete in this process drops it at once (Django
signals); other processes see the change after at most this time."""


class AgentSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of an agent, as its runs need it.

    `tools` are names, including those of `source_tools`: the tools that its MCP servers had listed
    when the spec was read.
    """

    id: str
    name: str
    description: str = ""
    kind: str = "hosted"
    provider: str = "scripted"
    model: str = ""
    instructions: str = ""
    options: dict[str, Any] = {}
    tools: tuple[str, ...] = ()
    source_tools: tuple[SourceTool, ...] = ()
    approvals: tuple[str, ...] = ()
    """The tools that a person has to approve each time."""
    delegates: tuple[tuple[str, str], ...] = ()
    """Names and descriptions of the agents that it may delegate work to (`is_for_owner`)."""
    pricing: Pricing = FREE
    strategy: str = "loop"
    strategy_options: dict[str, Any] = {}
    is_public: bool = False
    is_enabled: bool = True
    owner_id: int | None = None
    trigger: str = "mention"
    max_steps: int = 10
    max_output_tokens: int | None = None
    max_seconds: int | None = None
    history_messages: int | None = None
    url: str = ""
    protocol: str = ""
    secret: str = ""
    """The key of its model or of the remote agent, encrypted (agents_app.outbound.keys)."""
    failures: int = 0
    retry_at: float | None = None
    """The time before which a remote agent is not called, in seconds since 1970."""
    created_at: int = 0
    """Seconds since 1970."""


class AgentNotFoundError(LookupError):
    """The viewer has no such agent; does not reveal whether it exists."""


_specs: dict[str, tuple[float, AgentSpec]] = {}
# The ids of cached agents, by name as returned by `_folded`.
_ids: dict[str, str] = {}


def get_agent(name: str, *, viewer: Any, is_enabled: bool = True) -> AgentSpec | None:
    """Return the agent with an id or a name, ignoring case; `is_enabled` selects on or off.

    `viewer` is a user, a user's pk, an AnonymousUser or None. Returns None if the viewer may use no
    such agent, whether or not it exists.
    """
    visible = _visible(viewer, is_enabled=is_enabled)
    if AGENT_ID.fullmatch(name) and (agent := visible.filter(pk=name).first()):
        return spec_of(agent)
    folded = _folded(name)
    if not NAME_PATTERN.fullmatch(folded):
        return None
    named = visible.annotate(folded_name=Lower("name"))
    agent = named.filter(folded_name=folded).first()
    return None if agent is None else spec_of(agent)


def agent_named(name: str) -> Agent | None:
    """Return the agent with a name or id, even if it is private or switched off."""
    return _named(name).first()


def agent_id_named(name: str) -> str | None:
    """Like `agent_named`, but return only the id."""
    return _named(name).values_list("pk", flat=True).first()


def _named(name: str) -> QuerySet[Agent]:
    rows = Agent.objects.annotate(folded_name=Lower("name"))
    named = Q(folded_name=_folded(name)) if NAME_PATTERN.fullmatch(_folded(name)) else Q(pk=name)
    return rows.filter(named | Q(pk=name))


def agent_with_model(model: str, *, viewer: Any) -> AgentSpec | None:
    """Return the first agent, by name, whose model is `model` or that offers it as a choice.

    `viewer` is as for `get_agent`. Model ids are spelled as the provider spells them.
    """
    for agent in _visible(viewer).exclude(provider=ModelProvider.SCRIPTED).order_by(Lower("name")):
        if model == agent.model or model in agent.options.get("models", ()):
            return spec_of(agent)
    return None


def list_agents(viewer: Any) -> list[AgentSpec]:
    """Return the enabled agents that the viewer (as for `get_agent`) may use, by name."""
    return [spec_of(agent) for agent in _visible(viewer).order_by(Lower("name"))]


class AgentStanding(NamedTuple):
    """The facts that decide whether an agent may keep answering, as stored."""

    is_enabled: bool
    is_public: bool
    owner_id: int | None


def standing_of(agent_ids: Collection[str]) -> dict[str, AgentStanding]:
    """Return the standing of those of these agents that exist."""
    rows = Agent.objects.filter(pk__in=agent_ids)
    standings = rows.values_list("pk", "is_enabled", "is_public", "owner_id")
    return {
        pk: AgentStanding(is_enabled, is_public, owner_id)
        for pk, is_enabled, is_public, owner_id in standings
    }


def barred(
    uses: Collection[tuple[str, int | None]], standing: Mapping[str, AgentStanding]
) -> set[tuple[str, int | None]]:
    """Return those of these uses, each of an agent by a person, that `usable_by` rules out."""
    private = {
        (agent_id, user_id)
        for agent_id, user_id in uses
        if (agent := standing.get(agent_id)) is not None
        and not agent.is_public
        and (user_id is None or user_id != agent.owner_id)
    }
    people = {user_id for _, user_id in private if user_id is not None}
    if not people:
        return private
    staff = get_user_model().objects.filter(pk__in=people, is_staff=True, is_active=True)
    exempt = set(staff.values_list("pk", flat=True))
    return {use for use in private if use[1] not in exempt}


def usable_by(user_id: int | None, path: str = "") -> Q:
    """Match the agents that a person may use: public ones, their own and, for staff, all.

    Visitors use public ones at most. `path` leads from the rows that are filtered to the agent.
    """
    usable = Q(**{f"{path}is_public": True})
    if user_id is None:
        return usable
    staff = get_user_model().objects.filter(pk=user_id, is_staff=True, is_active=True)
    return usable | Q(**{f"{path}owner": user_id}) | Q(Exists(staff))


def is_for_owner(owner_id: int | None) -> Q:
    """Match the agents that an agent of this owner may involve in its answers.

    Operators make agents without an owner, and they may use every agent.
    """
    return Q() if owner_id is None else usable_by(owner_id)


def any_agent_takes_calls() -> bool:
    """Return whether an agent here takes part in voice calls (providers.options.takes_calls)."""
    return Agent.objects.filter(provider=ModelProvider.OPENAI_REALTIME, is_enabled=True).exists()


def any_agent_has_a_model() -> bool:
    """Return whether an agent here answers with a model, on this server or on another one.

    One that connects from elsewhere counts while it is connected.
    """
    is_elsewhere = Q(kind=AgentKind.REMOTE) | Q(kind=AgentKind.CONNECTED, is_connected=True)
    is_hosted = Q(kind=AgentKind.HOSTED) & ~Q(provider=ModelProvider.SCRIPTED)
    return Agent.objects.filter(is_hosted | is_elsewhere, is_enabled=True).exists()


def models_without_a_price() -> list[tuple[str, str]]:
    """Return name and model of the public agents that run at the operator's expense, by name."""
    agents = Agent.objects.filter(is_enabled=True, is_public=True)
    paid = agents.exclude(pk__in=agents.filter(visitors.cost_nothing()).values("pk"))
    return list(paid.order_by(Lower("name")).values_list("name", "model"))


def remembered(agent_id: str) -> AgentSpec | None:
    """Return the cached spec that `get_spec` would return, or None. Does not block."""
    cached = _specs.get(agent_id)
    return cached[1] if cached is not None and time.monotonic() < cached[0] else None


def remembered_agent(name: str, *, user_id: int | None) -> AgentSpec | None:
    """Return the cached agent with a name, if it is public or the user's own.

    Makes no query; the spec is at most SPEC_SECONDS old, as for `get_spec`. None means that the
    answer is not known.
    """
    folded = _folded(name)
    spec = None if AGENT_ID.fullmatch(name) else remembered(_ids.get(folded, ""))
    if spec is None or user_id is None or not spec.is_enabled or _folded(spec.name) != folded:
        return None
    return spec if spec.is_public or spec.owner_id == user_id else None


def get_spec(agent_id: str) -> AgentSpec:
    """Return an agent by id, enabled or not, at most SPEC_SECONDS old.

    Raises AgentNotFoundError.
    """
    cached = remembered(agent_id)
    if cached is not None:
        return cached
    agent = Agent.objects.filter(pk=agent_id).first()
    if agent is None:
        _specs.pop(agent_id, None)
        raise AgentNotFoundError(agent_id)
    return remembered_spec(agent)


def remembered_spec(agent: Agent) -> AgentSpec:
    """Return the spec of a row that was just read, and cache it for `get_spec`."""
    spec = spec_of(agent)
    _specs[agent.pk] = (time.monotonic() + SPEC_SECONDS, spec)
    _ids[_folded(spec.name)] = agent.pk
    return spec


def is_owned(agent_id: str, user_id: int | None) -> bool:
    """Return whether an agent belongs to a person; from the cache if possible."""
    try:
        return user_id is not None and get_spec(agent_id).owner_id == user_id
    except AgentNotFoundError:
        return False


def connect_cache() -> None:
    """Drop cached specs when rows change in this process."""
    post_save.connect(_forget, sender=Agent, dispatch_uid="agents_app.selectors")
    post_delete.connect(_forget, sender=Agent, dispatch_uid="agents_app.selectors")
    post_save.connect(_forget_all, sender=ToolSource, dispatch_uid="agents_app.selectors")
    post_delete.connect(_forget_all, sender=ToolSource, dispatch_uid="agents_app.selectors")


def forget(agent: Agent) -> None:
    """Drop an agent from the cache after a write that sends no signal."""
    _forget(agent)


def _forget(instance: Agent, **_kwargs: Any) -> None:
    _specs.pop(instance.pk, None)
    _ids.pop(_folded(instance.name), None)


def _forget_all(**_kwargs: Any) -> None:
    _specs.clear()
    _ids.clear()


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()


def _visible(viewer: Any, *, is_enabled: bool = True) -> QuerySet[Agent]:
    agents = Agent.objects.filter(is_enabled=is_enabled)
    user_id = getattr(viewer, "pk", viewer)
    if user_id is None:
        public = agents.filter(usable_by(None))
        return public if settings.UAMP_ANONYMOUS_MODELS else public.filter(visitors.cost_nothing())
    return agents.filter(usable_by(user_id))


def spec_of(agent: Agent) -> AgentSpec:
    """Return the spec of a row, saved or not, without the cache."""
    source_tools = tools_named(agent.tools)
    return AgentSpec(
        id=agent.id,
        name=agent.name,
        description=agent.description,
        kind=agent.kind,
        provider=_provider(agent),
        model=agent.model,
        instructions=agent.instructions,
        options=agent.options,
        tools=resolved_names(agent.tools, source_tools),
        source_tools=source_tools,
        approvals=tuple(agent.approvals),
        delegates=_delegates(agent.delegates, agent.owner_id),
        pricing=read_pricing(agent.pricing),
        strategy=agent.strategy,
        strategy_options=agent.strategy_options,
        is_public=agent.is_public,
        is_enabled=agent.is_enabled,
        owner_id=agent.owner_id,
        trigger=agent.trigger,
        max_steps=agent.max_steps,
        max_output_tokens=agent.max_output_tokens,
        max_seconds=agent.max_seconds,
        history_messages=agent.history_messages,
        url=agent.url,
        protocol=agent.protocol,
        secret=agent.secret,
        failures=agent.failures,
        retry_at=None if agent.retry_at is None else agent.retry_at.timestamp(),
        created_at=int(agent.created_at.timestamp()),
    )


def _provider(agent: Agent) -> str:
    """Return the provider of an agent; for a remote agent, the one whose parameters it accepts."""
    if agent.kind != AgentKind.REMOTE:
        return agent.provider
    if agent.protocol == RemoteProtocol.COMPLETIONS:
        return ModelProvider.OPENAI_COMPAT.value
    return f"remote_{agent.protocol}"


def _delegates(names: list[str], owner_id: int | None) -> tuple[tuple[str, str], ...]:
    """Return the names and descriptions of those of these agents that an owner's agent may ask."""
    if not names:
        return ()
    folded_names = [_folded(name) for name in names]
    rows = Agent.objects.annotate(folded_name=Lower("name")).filter(
        is_for_owner(owner_id), folded_name__in=folded_names, is_enabled=True
    )
    return tuple(rows.order_by("name").values_list("name", "description"))


NAMES_SECONDS = 60
MAX_NAMES = 10_000


def known_names() -> dict[str, str]:
    """Return the names of agents by id, for lists: at most a minute old, at most MAX_NAMES."""
    names: dict[str, str] | None = cache.get("agents:names")
    if names is None:
        names = dict(Agent.objects.order_by("-pk").values_list("pk", "name")[:MAX_NAMES])
        cache.set("agents:names", names, NAMES_SECONDS)
    return names


def names_of(agent_ids: Collection[str]) -> dict[str, str]:
    """Return the names of agents by id; deleted agents are left out."""
    return dict(Agent.objects.filter(pk__in=list(agent_ids)).values_list("pk", "name"))
