"""Rights in the chats from which a chat was copied: showing a copy needs rights in its source.

Others wrote the history of a fork in its source. A member who may not show the source to others may
not show them its copy either, and losing a right there means losing it in the fork.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db.models import Exists, OuterRef

from chat_app.members.rights import RIGHTS, NotAllowed
from chat_app.models import ChatOrigin, Message, Participant

if TYPE_CHECKING:
    from collections.abc import Collection

    from chat_app.members.rights import Right

GENERATIONS: Final = 64
"""How many generations of forks are checked; a longer chain grants no right."""


def may_in_sources(chat_id: str, user_id: int, rights: Collection[Right]) -> bool:
    """Return whether a person has rights in every chat from which a chat was copied.

    What was copied from a deleted chat must be the person's own, apart from the answers of agents;
    the chats that it was forked from count as before.
    """
    roles = [role for role, theirs in RIGHTS.items() if set(rights) <= theirs]
    for _ in range(GENERATIONS):
        origin = ChatOrigin.objects.filter(pk=chat_id).first()
        if origin is None:
            return True
        if _has_left_words_of_others(chat_id, user_id):
            return False
        if origin.source_id is None:
            return True
        allowed = Participant.objects.filter(
            chat_id=origin.source_id, user_id=user_id, left_at__isnull=True, role__in=roles
        )
        if not allowed.exists():
            return False
        chat_id = origin.source_id
    return False


def _has_left_words_of_others(chat_id: str, user_id: int) -> bool:
    """Return whether a fork has messages of others whose original is gone, with its chat."""
    original = Message.objects.filter(pk=OuterRef("copied_from"))
    copies = Message.objects.filter(
        chat_id=chat_id, copied_from__isnull=False, sender_user__isnull=False
    )
    return copies.exclude(sender_user=user_id).exclude(Exists(original)).exists()


def check_right_in_sources(chat_id: str, user_id: int, right: Right) -> None:
    """Raise NotAllowed if a person lacks a right in a chat that this one was copied from."""
    if not may_in_sources(chat_id, user_id, {right}):
        raise NotAllowed(
            right, "This chat begins with messages of another chat, in which you may not do that."
        )
