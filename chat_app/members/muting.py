"""Chats that a member muted: their own setting, which the other members do not see. Synchronous."""

from __future__ import annotations

from django.utils import timezone

from chat_app.members.membership import NotAMember
from chat_app.models import Participant


def set_muted(*, chat_id: str, user_id: int, muted: bool) -> None:
    """Mute a chat for one of its members, or end that; raises NotAMember."""
    own = Participant.objects.filter(chat_id=chat_id, user_id=user_id, left_at__isnull=True)
    now = timezone.now() if muted else None
    if not own.update(muted_at=now):
        raise NotAMember
