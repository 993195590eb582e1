"""Creating and changing agents on behalf of people, with the same checks as the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.core.exceptions import ValidationError
from django.utils import timezone

from agents_app.admin.agent_form import offered_tools
from agents_app.admin.trial import may_look
from agents_app.delegates import unknown_to_owner
from agents_app.models import Agent, AgentKind, ModelProvider, RemoteProtocol
from agents_app.models.agents import AgentReplyTrigger, StrategyName
from agents_app.outbound.rules import Unreachable
from agents_app.providers.clients import is_key_name
from agents_app.providers.options import problem_of_new, unknown_options
from agents_app.providers.readiness import problem_of_address
from agents_app.providers.scripts import SCRIPTS
from agents_app.remote.discovery import discover, facts_of
from agents_app.remote.probes import probe
from agents_app.remote.rules import (
    NO_KEY,
    NOT_FOR_PEERS,
    complete,
    is_key,
    may_own,
    problem_of_key,
    problems_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from django.contrib.auth.models import User
    from django.db.models import TextChoices

__all__ = [
    "FIELDS",
    "NO_KEY",
    "Unreachable",
    "change",
    "choices_of",
    "discover",
    "editable",
    "is_key",
    "make",
    "may_look",
    "may_make",
    "probe",
]

FIELDS: Final = (
    "name",
    "description",
    "kind",
    "provider",
    "model",
    "url",
    "protocol",
    "instructions",
    "options",
    "tools",
    "approvals",
    "delegates",
    "pricing",
    "strategy",
    "strategy_options",
    "is_public",
    "is_enabled",
    "trigger",
    "max_steps",
    "max_output_tokens",
    "max_seconds",
    "history_messages",
)
_CHOICES: Final[Mapping[str, type[TextChoices]]] = {
    "kind": AgentKind,
    "provider": ModelProvider,
    "protocol": RemoteProtocol,
    "strategy": StrategyName,
    "trigger": AgentReplyTrigger,
}
CONFIGURATION_BYTES: Final = 64 * 1024
"""The size limit of all fields of an agent together, as JSON."""


def choices_of(field: str) -> list[str]:
    """Return the allowed values of a field of an agent."""
    return list(_CHOICES[field].values)


def may_make(user: User) -> bool:
    """Return whether a person may create agents: they need `agents_app.add_agent`."""
    return user.has_perm("agents_app.add_agent")


def editable(agent_id: str, user: User) -> Agent | None:
    """Return an agent that a person may change: their own, with `agents_app.change_agent`.

    Superusers may change every agent.
    """
    rows = Agent.objects.filter(pk=agent_id)
    if not user.is_superuser:
        if not user.has_perm("agents_app.change_agent"):
            return None
        rows = rows.filter(owner=user)
    return rows.first()


def make(values: Mapping[str, Any], *, owner: User) -> Agent:
    """Create an agent for a person; raises ValidationError with a message for each invalid field.

    The member `key` is the key of its model or of the remote agent.
    """
    values, key = dict(values), values.get("key")
    values.pop("key", None)
    agent = Agent(owner=owner, **values)
    _check(agent, key, agent.delegates)
    _look(agent)
    agent.save(force_insert=True)
    return agent


def change(agent: Agent, values: Mapping[str, Any]) -> Agent:
    """Change fields of an agent. Raises ValidationError, in which case nothing is written.

    The member `key` is the key of its model or of the remote agent; "" removes it.
    """
    for name, value in values.items():
        if name != "key":
            setattr(agent, name, value)
    _check(agent, values.get("key"), values.get("delegates", ()))
    if {"url", "key", "kind"} & {*values}:
        _look(agent)
    agent.save()
    return agent


def _look(agent: Agent) -> None:
    """Discover a remote agent at its address, as the admin's form does."""
    agent.found, agent.probed_at = {}, None
    if agent.kind == AgentKind.REMOTE:
        agent.found, agent.probed_at = facts_of(agent), timezone.now()


def _check(agent: Agent, key: str | None, delegates: Collection[str]) -> None:
    """Raise ValidationError for what cannot be saved; `delegates` are those that the caller names.

    Those that were named before may have become private, and are not asked then.
    """
    size = len(msgspec.json.encode({name: getattr(agent, name) for name in FIELDS}))
    if size > CONFIGURATION_BYTES:
        raise ValidationError(f"All fields may have at most {CONFIGURATION_BYTES} bytes together.")
    if problems := _problems(agent, key, delegates):
        raise ValidationError(problems)
    agent.full_clean()
    complete(agent, key)


def _problems(agent: Agent, key: str | None, delegates: Collection[str]) -> dict[str, str]:
    """Return the problems with the fields, in the words of the admin's form."""
    tool_names = {name for group in offered_tools().values() for name in group}
    if agent.kind == AgentKind.REMOTE:
        values = {name: getattr(agent, name) for name in FIELDS}
        problems = dict(problems_of({**values, "key": key}))
        if not may_own(agent):
            problems["protocol"] = NOT_FOR_PEERS
    elif agent.kind == AgentKind.CONNECTED:
        # Only its daemon knows what it answers with.
        problems = _problems_of_options(agent)
    else:
        problems = _problems_of_model(agent)
    if key and agent.kind != AgentKind.REMOTE:
        problem = problem_of_key(key, agent.kind, agent.provider, agent.options)
        if problem is not None:
            problems["key"] = problem
    if missing := [name for name in agent.tools if name not in tool_names]:
        problems["tools"] = f"No such tool: {', '.join(missing)}."
    if missing := unknown_to_owner(delegates, agent.owner_id):
        problems["delegates"] = f"No such agent: {', '.join(missing)}."
    return problems


def _problems_of_options(agent: Agent) -> dict[str, str]:
    if unknown := unknown_options(agent.kind, agent.options):
        return {"options": f"Unknown options: {', '.join(unknown)}."}
    problem = problem_of_new(agent.kind, agent.options)
    return {} if problem is None else {"options": problem}


def _problems_of_model(agent: Agent) -> dict[str, str]:
    options, provider = agent.options, agent.provider
    variable = options.get("api_key_env")
    problems: dict[str, str | None] = {}
    if "api_key" in options or (variable is not None and not is_key_name(variable)):
        problems["options"] = (
            "Enter a key as `key`, or name an environment variable that ends in _API_KEY."
        )
    elif unknown := unknown_options(provider, options):
        problems["options"] = f"Unknown options: {', '.join(unknown)}."
    else:
        problems["options"] = problem_of_new(provider, options)
    if agent.is_enabled and provider != ModelProvider.SCRIPTED and not problems.get("options"):
        problems["options"] = problem_of_address(provider, options)
    if provider != ModelProvider.SCRIPTED and not agent.model:
        problems["model"] = "Enter the name of the model."
    if provider == ModelProvider.SCRIPTED and options.get("script", agent.name) not in SCRIPTS:
        problems["options"] = f"Choose a script: {', '.join(SCRIPTS)}."
    return {name: words for name, words in problems.items() if words}
