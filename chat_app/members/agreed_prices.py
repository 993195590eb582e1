"""The prices that a paying owner, or an owner for the pool, agreed to, by agent. Synchronous.

They are those of the agents in the chat, and of the agents that these may give work to, at the time
when an owner chose the payer or added an agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from agents_app import selectors as agents
from agents_app.pricing import Pricing
from chat_app.models import Participant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def prices_of(agent_ids: Iterable[str]) -> dict[str, Any]:
    """Return the prices of agents and of those that they may give work to, by id."""
    prices: dict[str, Any] = {}
    queue = list(agent_ids)
    while queue:
        agent_id = queue.pop()
        if agent_id in prices:
            continue
        spec = agents.get_spec(agent_id)
        prices[agent_id] = msgspec.to_builtins(spec.pricing)
        queue += [pk for name, _ in spec.delegates if (pk := agents.agent_id_named(name))]
    return prices


def prices_in(chat_id: str) -> dict[str, Any]:
    """Return the prices of the agents of a chat."""
    rows = Participant.objects.filter(chat_id=chat_id, agent__isnull=False, left_at__isnull=True)
    return prices_of([pk for pk in rows.values_list("agent_id", flat=True) if pk])


def without_agent(agreed: Mapping[str, Any], agent_id: str, chat_id: str) -> dict[str, Any]:
    """Return agreed prices without those of an agent that left a chat.

    Nor do those stay of agents that only it could give work to.
    """
    still_there = prices_in(chat_id)
    return {pk: price for pk, price in agreed.items() if pk in still_there and pk != agent_id}


def is_agreed(agreed: Mapping[str, Any] | None, agent_id: str, pricing: Pricing) -> bool:
    """Return whether an owner agreed to these prices of an agent, or to higher ones."""
    if pricing.is_free:
        return True
    try:
        return pricing.is_within(msgspec.convert((agreed or {})[agent_id], Pricing))
    except (KeyError, msgspec.ValidationError):
        return False
