"""Rules by which a message notifies a person, as in static/chat/notifications/rules.js. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from chat_app.models import NotificationLevel

if TYPE_CHECKING:
    from datetime import datetime

    from chat_app.models import Participant, PersonSettings


def notifies(
    member: Participant,
    settings: PersonSettings,
    *,
    is_direct: bool,
    is_mention: bool,
    is_followed: bool,
) -> bool:
    """Return whether a message of another member notifies, at any hour."""
    if member.left_at is not None or member.muted_at is not None:
        return False
    level = member.notifications or settings.notifications
    if level == NotificationLevel.MENTIONS:
        return is_direct or is_mention or is_followed
    return level == NotificationLevel.ALL


def is_quiet(settings: PersonSettings, now: datetime) -> bool:
    """Return whether it is within the person's quiet hours."""
    begin, end = settings.quiet_from, settings.quiet_until
    if not begin or not end:
        return False
    try:
        time = now.astimezone(ZoneInfo(settings.time_zone)).strftime("%H:%M")
    except (ZoneInfoNotFoundError, ValueError):
        # A zone that this machine does not know.
        return False
    return begin <= time < end if begin < end else time >= begin or time < end
