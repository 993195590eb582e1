"""Rights in the chats from which a chat was copied: what leaves a chat needs a right there.

The history of a fork was written by others in its source. A member who may not show the source to
others may not show them its copy either, and a right that is lost there is lost in the fork.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from chat_app.members.rights import RIGHTS, NotAllowed
from chat_app.models import ChatOrigin, Message, Participant

if TYPE_CHECKING:
    from collections.abc import Collection

    from chat_app.members.rights import Right

GENERATIONS: Final = 64
"""Forks of forks whose sources are asked; a longer line gives no right."""


def may_in_sources(chat_id: str, user_id: int, rights: Collection[Right]) -> bool:
    """Return whether a person has rights in each chat from which a chat was copied.

    A source that was deleted asks for none where the person wrote all that was copied, but for the
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
    """Raise NotAllowed where a person does not have a right in a chat that this one copies."""
    if not may_in_sources(chat_id, user_id, {right}):
        raise NotAllowed(
            right, "This chat begins with messages of another one, in which you may not do that."
        )
