"""Queueing of the messages that notify people in browsers whose pages are closed. Synchronous.

Each process looks at the messages of the last minute, every second. A delivery is unique, so that
several processes queue it once, and none is lost when one of them dies.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Count

from chat_app.members.presence import online_user_ids
from chat_app.models import (
    Message,
    MessageMention,
    NotificationLevel,
    Participant,
    PushDelivery,
    PushSubscription,
    ThreadFollower,
)
from chat_app.people.settings import settings_of_people
from chat_app.push.rules import notifies

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from django.db.models import QuerySet
    from django.db.models.functions import Now

LOOKS_BACK_SECONDS: Final = 60
MESSAGES_AT_ONCE: Final = 500
WAIT_SECONDS: Final = 20
"""How long a person with an open page has to read a message, before other devices are sent it."""
PER_MINUTE: Final = 30
"""The most messages that a device is sent in a minute; further ones do not notify."""


def queue_news(now: datetime) -> int:
    """Queue the deliveries of new messages; return how many."""
    since = now - timedelta(seconds=LOOKS_BACK_SECONDS)
    members = _members(now)
    messages = _messages(members, since)
    if not messages:
        return 0
    deliveries = _deliveries(messages, members, now)
    PushDelivery.objects.bulk_create(deliveries, ignore_conflicts=True)
    return len(deliveries)


def notified(now: datetime | Now) -> QuerySet[Participant]:
    """Return the members with subscriptions of the chats that were recently written to."""
    since: Any = now - timedelta(seconds=LOOKS_BACK_SECONDS)
    return Participant.objects.filter(
        user__in=PushSubscription.objects.values("user"),
        user__is_active=True,
        left_at__isnull=True,
        muted_at__isnull=True,
        chat__latest_at__gte=since,
    )


def _members(now: datetime) -> dict[str, list[Participant]]:
    """Return the members of `notified` that want notifications, by chat."""
    members = defaultdict(list)
    for row in notified(now):
        if row.notifications != NotificationLevel.NONE:
            members[row.chat_id].append(row)
    return members


def _messages(members: dict[str, list[Participant]], since: datetime) -> list[Message]:
    if not members:
        return []
    rows = Message.objects.filter(created_at__gte=since, chat__in=list(members))
    rows = rows.filter(deleted_at__isnull=True, copied_from__isnull=True, replaced_by__isnull=True)
    newest = rows.order_by("-created_at", "-pk")[:MESSAGES_AT_ONCE]
    return [row for row in newest if row.content or row.content_items]


def _deliveries(
    messages: Sequence[Message], members: dict[str, list[Participant]], now: datetime
) -> list[PushDelivery]:
    pks = [message.pk for message in messages]
    people = {row.user_id for rows in members.values() for row in rows if row.user_id is not None}
    settings = settings_of_people(people)
    direct = direct_chats({message.chat_id for message in messages})
    mentions = set(
        MessageMention.objects.filter(message__in=pks).values_list("message_id", "user_id")
    )
    threads = {message.thread for message in messages if message.thread}
    followers = set(
        ThreadFollower.objects.filter(thread__in=threads).values_list("thread_id", "user_id")
    )
    devices: dict[int, list[PushSubscription]] = defaultdict(list)
    for row in PushSubscription.objects.filter(user__in=people).only("user", "created_at"):
        devices[row.user_id].append(row)
    existing = set(
        PushDelivery.objects.filter(message__in=pks).values_list("subscription_id", "message_id")
    )
    counts = _recent_counts(now)
    online = online_user_ids(people)
    deliveries = []
    for message in reversed(messages):
        for member in members[message.chat_id]:
            user_id = member.user_id
            if user_id is None or user_id == message.sender_user_id:
                continue
            is_mention = (message.pk, user_id) in mentions
            is_followed = message.thread is not None and (message.thread, user_id) in followers
            if (message.thread_only and not is_followed) or not notifies(
                member,
                settings[user_id],
                is_direct=message.chat_id in direct,
                is_mention=is_mention,
                is_followed=is_followed,
            ):
                continue
            wait = timedelta(seconds=WAIT_SECONDS if user_id in online else 0)
            for device in devices[user_id]:
                is_older = message.created_at < device.created_at
                is_known = (device.pk, message.pk) in existing
                if is_older or is_known or counts[device.pk] >= PER_MINUTE:
                    continue
                counts[device.pk] += 1
                deliveries.append(
                    PushDelivery(
                        subscription_id=device.pk,
                        message=message,
                        is_mention=is_mention,
                        is_followed=is_followed,
                        due_at=now + wait,
                        notify_at=now + wait,
                        created_at=now,
                    )
                )
    return deliveries


def direct_chats(chat_ids: set[str]) -> set[str]:
    """Filter chats to those with two members."""
    rows = Participant.objects.filter(chat__in=chat_ids, left_at__isnull=True).order_by()
    counted = rows.values("chat").annotate(members=Count("pk")).filter(members=2)
    return set(counted.values_list("chat", flat=True))


def _recent_counts(now: datetime) -> defaultdict[int, int]:
    recent = PushDelivery.objects.filter(created_at__gte=now - timedelta(minutes=1)).order_by()
    rows = recent.values_list("subscription").annotate(count=Count("pk"))
    return defaultdict(int, dict(rows))
