"""The place of a chat in a member's own list, which the others do not see. Synchronous."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from chat_app.members.membership import NotAMember
from chat_app.models import Participant
from chat_app.people.notices import notify_person


def set_place(
    *,
    chat_id: str,
    user_id: int,
    pinned: bool | None = None,
    archived: bool | None = None,
    marked_unread: bool | None = None,
) -> None:
    """Pin, archive or mark a chat as unread for one of its members; None leaves a value as it is.

    An archived chat is back in the list with its next entry. Raises NotAMember.
    """
    values: dict[str, Any] = {}
    if pinned is not None:
        values["pinned_at"] = timezone.now() if pinned else None
    if archived is not None:
        values["archived_at"] = timezone.now() if archived else None
    if marked_unread is not None:
        values["marked_unread"] = marked_unread
    rows = Participant.objects.filter(chat_id=chat_id, user_id=user_id, left_at__isnull=True)
    if not rows.update(**values):
        raise NotAMember
    notify_person(user_id, "chat_settings", chat_id=chat_id)
