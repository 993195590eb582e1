"""Notification settings of a member in a chat, which the others do not see.

Synchronous. Pages notify of a muted chat never, and of another one as its level says, else as the
person's settings say.
"""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from chat_app.members.membership import NotAMember
from chat_app.models import Participant
from chat_app.people.notices import notify_person


def set_muted(
    *, chat_id: str, user_id: int, muted: bool | None = None, notifications: str | None = None
) -> None:
    """Mute a chat for one of its members, or end that; set the level of its notifications.

    None stays; an empty level is the one of the person's settings. Raises NotAMember.
    """
    values: dict[str, Any] = {}
    if muted is not None:
        values["muted_at"] = timezone.now() if muted else None
    if notifications is not None:
        values["notifications"] = notifications or None
    own = Participant.objects.filter(chat_id=chat_id, user_id=user_id, left_at__isnull=True)
    if not own.update(**values):
        raise NotAMember
    notify_person(user_id, "chat_settings", chat_id=chat_id)
