"""The people to mail, and the messages of each. Synchronous."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from allauth.account.models import EmailAddress
from django.conf import settings
from django.db.models import Exists, F, OuterRef, Q

from chat_app.models import (
    Message,
    MessageMention,
    NotificationLevel,
    Participant,
    PersonSettings,
    ReadReceipt,
    UnreadMail,
)
from chat_app.people.settings import settings_of
from chat_app.push.news import direct_chats

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet

UNREAD: Final = timedelta(minutes=15)
"""How long messages stay unread before they are mailed."""
PAUSE: Final = timedelta(hours=1)
"""A person gets at most one mail in this time."""
LOOKS_BACK: Final = timedelta(hours=3)
"""Older messages are not mailed, as after an outage of the server."""
PEOPLE_AT_ONCE: Final = 50
MESSAGES_MAX: Final = 20


def people_to_mail(now: datetime) -> list[int]:
    """Return people who may have unread messages to mail, at most PEOPLE_AT_ONCE."""
    if settings.UAMP_MAIL == "off":
        return []
    read = ReadReceipt.objects.filter(
        chat=OuterRef("chat"), user=OuterRef("user"), seq__gte=OuterRef("chat__last_seq")
    )
    rows = _members(now).filter(
        Exists(EmailAddress.objects.filter(user=OuterRef("user"), verified=True, primary=True)),
        ~Exists(read),
        ~Exists(PersonSettings.objects.filter(pk=OuterRef("user"), mail_unread=False)),
        ~Exists(UnreadMail.objects.filter(pk=OuterRef("user"), mailed_at__gt=now - PAUSE)),
    )
    # Those who were looked at longest ago come first.
    place = F("user__unread_mail__looked_until").asc(nulls_first=True)
    pairs = rows.order_by(place, "user").values_list("user", "user__unread_mail__looked_until")
    return [user_id for user_id, _ in pairs.distinct()[:PEOPLE_AT_ONCE]]


def address_of(user_id: int) -> str:
    """Return the confirmed address of a person; "" for none."""
    rows = EmailAddress.objects.filter(user=user_id, verified=True, primary=True)
    return str(rows.values_list("email", flat=True).first() or "")


def unread_messages(user_id: int, *, since: datetime, until: datetime) -> list[Message]:
    """Return the unread mentions and direct messages of a time, oldest first."""
    person_settings = settings_of(user_id)
    members = {
        row.chat_id: row
        for row in _members(until).filter(user=user_id)
        if (row.notifications or person_settings.notifications) != NotificationLevel.NONE
    }
    direct = direct_chats(set(members))
    mentioned = MessageMention.objects.filter(message=OuterRef("pk"), user=user_id)
    read = ReadReceipt.objects.filter(chat=OuterRef("chat"), user=user_id, seq__gte=OuterRef("seq"))
    rows = Message.objects.filter(
        Q(chat__in=direct) | Exists(mentioned),
        ~Exists(read),
        created_at__gt=since,
        created_at__lte=until,
        chat__in=list(members),
        sender_user__isnull=False,
        thread_only__isnull=True,
        deleted_at__isnull=True,
        copied_from__isnull=True,
    ).exclude(sender_user=user_id)
    messages = rows.select_related("chat", "sender_user__profile").order_by("created_at", "pk")
    return list(messages[:MESSAGES_MAX])


def _members(now: datetime) -> QuerySet[Participant]:
    """Return people's places in the chats that were written to lately, unless they muted them."""
    return Participant.objects.filter(
        user__is_active=True,
        left_at__isnull=True,
        muted_at__isnull=True,
        chat__latest_at__gte=now - LOOKS_BACK - UNREAD,
    )
