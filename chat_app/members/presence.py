"""Presence: one row for each open socket of a person, refreshed by its process.

It also notifies the members of a person's chats of a changed profile.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone

import uamp
from chat_app.ids import new_event_id
from chat_app.log import fanout
from chat_app.log.entries import milliseconds
from chat_app.members.chat_lists import chats_with_presence
from chat_app.models import Presence
from chat_app.people.profiles import profile_data
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from django.contrib.auth.models import User


def open_presence(*, presence_id: str, user_id: int, process: str, now: datetime) -> bool:
    """Record an open socket; return whether the person was offline before."""
    with transaction.atomic():
        fresh = now - timedelta(seconds=Presence.FRESH_SECONDS)
        was_online = Presence.objects.filter(user_id=user_id, seen_at__gte=fresh).exists()
        Presence.objects.create(
            id=presence_id, user_id=user_id, process=process, connected_at=now, seen_at=now
        )
    return not was_online


def close_presence(*, presence_id: str, user_id: int, now: datetime) -> bool:
    """Forget an open socket; return whether the person is now offline."""
    with transaction.atomic():
        Presence.objects.filter(pk=presence_id).delete()
        fresh = now - timedelta(seconds=Presence.FRESH_SECONDS)
        return not Presence.objects.filter(user_id=user_id, seen_at__gte=fresh).exists()


def renew_presence(presence_ids: Sequence[str], *, now: datetime) -> None:
    """Refresh the sockets that a process holds; delete those that no process holds."""
    # A socket opened after `now` was read is fresh anyway.
    Presence.objects.filter(pk__in=presence_ids, connected_at__lte=now).update(seen_at=now)
    stale = now - timedelta(seconds=2 * Presence.FRESH_SECONDS)
    Presence.objects.filter(seen_at__lt=stale).delete()


def open_sockets(now: datetime, limit: int) -> int:
    """Return the number of people's open sockets, counted up to `limit`."""
    fresh = now - timedelta(seconds=Presence.FRESH_SECONDS)
    rows = Presence.objects.filter(seen_at__gte=fresh).order_by().values("pk")
    return rows[:limit].count()


def online_user_ids(user_ids: Iterable[int]) -> set[int]:
    """Filter people to those who are online."""
    fresh = timezone.now() - timedelta(seconds=Presence.FRESH_SECONDS)
    return set(
        Presence.objects.filter(user_id__in=list(user_ids), seen_at__gte=fresh).values_list(
            "user_id", flat=True
        )
    )


def notify_of_profile(user: User) -> None:
    """Send `profile.changed` to the chats of a person on commit; very large chats are left out."""
    now = milliseconds(timezone.now())
    for chat_id in chats_with_presence(user.pk):
        event = ev.ProfileChanged(
            event_id=new_event_id(),
            timestamp=now,
            user_id=str(user.pk),
            username=user.get_username(),
            chat_id=chat_id,
            **profile_data(user),
        )
        signal = fanout.signal_message(chat_id=chat_id, frame=uamp.encode(event), is_watched=True)
        fanout.publish_on_commit(chat_id, [signal])
