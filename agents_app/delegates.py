"""The agents that another agent may delegate work to, when they are declared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_app.models import Agent
from agents_app.selectors import is_for_owner

if TYPE_CHECKING:
    from collections.abc import Collection


def unknown_to_owner(names: Collection[str], owner_id: int | None) -> list[str]:
    """Return those of these names that an agent of this owner cannot delegate to.

    A private agent of others is as unknown as one that does not exist.
    """
    available_names = Agent.objects.filter(is_for_owner(owner_id)).values_list("name", flat=True)
    folded = {name.casefold() for name in available_names}
    return [name for name in names if name.casefold() not in folded]
