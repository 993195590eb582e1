"""Rights in the chats from which a chat was copied: showing a copy needs rights in its source.

Others wrote the history of a fork in its source. A member who may not show the source to others may
not show them its copy either, and losing a right there means losing it in the fork.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from chat_app.members.rights import RIGHTS, NotAllowed
from chat_app.models import ChatOrigin, Message, Participant

if TYPE_CHECKING:
    from collections.abc import Collection

    from chat_app.members.rights import Right

GENERATIONS: Final = 64
"""How many generations of forks are checked; a longer chain grants no right."""


def may_in_sources(chat_id: str, user_id: int, rights: Collection[Right]) -> bool:
    """Return whether a person has rights in every chat from which a chat was copied.

    A deleted source grants them if the person wrote everything that was copied, apart from the
    answers of agents.
    """
    roles = [role for role, theirs in RIGHTS.items() if set(rights) <= theirs]
    for _ in range(GENERATIONS):
        origin = ChatOrigin.objects.filter(pk=chat_id).first()
        if origin is None:
            return True
        if origin.source_id is None:
            of_others = Message.objects.filter(
                chat_id=chat_id, copied_from__isnull=False, sender_user__isnull=False
            ).exclude(sender_user=user_id)
            return not of_others.exists()
        allowed = Participant.objects.filter(
            chat_id=origin.source_id, user_id=user_id, left_at__isnull=True, role__in=roles
        )
        if not allowed.exists():
            return False
        chat_id = origin.source_id
    return False


def check_right_in_sources(chat_id: str, user_id: int, right: Right) -> None:
    """Raise NotAllowed if a person lacks a right in a chat that this one was copied from."""
    if not may_in_sources(chat_id, user_id, {right}):
        raise NotAllowed(
            right, "This chat begins with messages of another one, in which you may not do that."
        )
