"""The fields of a person's agent that only its owner changes, and operators who may act as them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agents_app.models import AgentKind
from agents_app.pricing import read_pricing
from agents_app.remote.onward import OPTION, TRUST

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from agents_app.models import Agent

# Programs and other agents reach an agent by its name. The account of a key may keep a log of what
# it is sent.
_FIELDS: Final = (
    "name",
    "owner",
    "kind",
    "provider",
    "url",
    "protocol",
    "delegates",
    "key",
    "remove_key",
)
_OPTIONS: Final = ("base_url", "api_key_env", OPTION, TRUST)


def owners_changes(
    agent: Agent, changed: Collection[str], values: Mapping[str, Any]
) -> Collection[str]:
    """Return the changed fields that decide who reads what an agent is sent, or who pays for it.

    `agent` is as stored; `values` are those of the form.
    """
    fields = [field for field in _FIELDS if field in changed]
    if "pricing" in changed and _has_other_prices(agent, values.get("pricing")):
        fields.append("pricing")
    options = values.get("options") or {}
    if any(options.get(name) != agent.options.get(name) for name in _OPTIONS):
        fields.append("options")
    # The model of a remote agent is its name on its server.
    if values.get("kind") == AgentKind.REMOTE and "model" in changed:
        fields.append("model")
    # A tool can pass on what it is called with, and the model decides what that is.
    if not set(values.get("tools", ())) <= set(agent.tools):
        fields.append("tools")
    # Operators may hide an agent, but not offer it to everyone at its owner's expense.
    if "is_public" in changed and values.get("is_public"):
        fields.append("is_public")
    return fields


def _has_other_prices(agent: Agent, value: Any) -> bool:
    """Return whether prices differ from an agent's; the form may write the same ones otherwise."""
    try:
        stored, pricing = read_pricing(agent.pricing), read_pricing(value)
    except ValueError:
        return True
    return not (pricing.is_within(stored) and stored.is_within(pricing))
