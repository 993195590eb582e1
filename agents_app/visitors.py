"""The agents that visitors may use. Synchronous."""

from __future__ import annotations

import os
from typing import Final

from django.conf import settings
from django.db.models import Q

from agents_app.models import Agent, AgentKind, ModelProvider

_PRICES_OF_MODELS: Final = (
    "per_answer",
    "input_per_1k",
    "output_per_1k",
    "audio_input_per_1k",
    "audio_output_per_1k",
)
_ADDRESS_VARIABLES: Final = {
    ModelProvider.OPENAI_COMPAT: "OPENAI_BASE_URL",
    ModelProvider.OPENAI_REALTIME: "OPENAI_BASE_URL",
    ModelProvider.ANTHROPIC: "ANTHROPIC_BASE_URL",
    ModelProvider.GOOGLE: "GOOGLE_BASE_URL",
}


def cost_nothing() -> Q:
    """Match agents that cost the operator nothing when visitors use them.

    They have no model, charge for answers or tokens, or use a model at the operator's own address:
    only an internal host may use plain http (docs/adr/0014-models-keys-and-addresses.md). A remote
    agent needs a price; otherwise it is for signed-in people only.
    """
    matching = Q(provider=ModelProvider.SCRIPTED) & ~Q(kind=AgentKind.REMOTE)
    for price in _PRICES_OF_MODELS:
        # A price of "0" counts as no price.
        matching |= Q(**{f"pricing__{price}__regex": "[1-9]"})
    matching |= Q(options__base_url__istartswith="http://")
    for provider, variable in _ADDRESS_VARIABLES.items():
        if os.environ.get(variable, "").lower().startswith("http://"):
            matching |= Q(provider=provider) & ~Q(options__has_key="base_url")
    return matching


def may_ask(agent_id: str) -> bool:
    """Return whether visitors may use an agent; for people, `get_agent` decides."""
    if settings.UAMP_ANONYMOUS_MODELS:
        return True
    return Agent.objects.filter(cost_nothing(), pk=agent_id).exists()
