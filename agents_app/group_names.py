"""Names that no agent may take, because mentions of them address others: everyone, or a person."""

from __future__ import annotations

from typing import Final

from django.contrib.auth import get_user_model

GROUP_NAMES: Final = frozenset({"all", "everyone", "here"})


def problem_of_name(name: str, owner_id: int | None) -> str:
    """Return why an agent of this owner may not be called this, or "". Synchronous."""
    if name.casefold() in GROUP_NAMES:
        return f"People write @{name} to everyone. Choose another name."
    if is_name_of_another(name, owner_id):
        # A message to them would ask the agent, and perhaps pay it.
        return f"People write @{name} to a person. Choose another name."
    return ""


def is_name_of_another(name: str, owner_id: int | None) -> bool:
    """Return whether a person other than the owner has the user name. Synchronous."""
    people = get_user_model().objects.filter(username__iexact=name)
    return people.exclude(pk=owner_id or 0).exists()
