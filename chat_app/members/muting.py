"""A member's notification settings in a chat, which the others do not see.

Synchronous. Pages never notify of a muted chat; for others the chat's level applies, or else the
person's settings.
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
    """Mute or unmute a chat for one of its members; set the level of its notifications.

    None leaves a value as it is; an empty level falls back to the person's settings. Raises
    NotAMember.
    """
    values: dict[str, Any] = {}
    if muted is not None:
        values["muted_at"] = timezone.now() if muted else None
    if notifications is not None:
        values["notifications"] = notifications or None
    rows = Participant.objects.filter(chat_id=chat_id, user_id=user_id, left_at__isnull=True)
    if not rows.update(**values):
        raise NotAMember
    notify_person(user_id, "chat_settings", chat_id=chat_id)
