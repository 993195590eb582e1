"""Attempts to send a message to a browser: claimed, sent and recorded. Synchronous."""

from __future__ import annotations

import hashlib
import logging
import random
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from agents_app.outbound.guard import post
from agents_app.outbound.rules import Unreachable, current_policy
from chat_app.models import (
    Participant,
    PushDelivery,
    PushSubscription,
    ReadReceipt,
    ThreadFollower,
)
from chat_app.people.settings import settings_of
from chat_app.push.encryption import encrypt, from_base64url, to_base64url
from chat_app.push.news import direct_chats
from chat_app.push.payloads import payload_of
from chat_app.push.rules import is_quiet, notifies
from chat_app.push.subscriptions import is_signed_in
from chat_app.push.vapid import authorization, server_key

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from django.db.models import QuerySet
    from django.db.models.functions import Now

    from chat_app.models import PersonSettings

logger = logging.getLogger(__name__)

ATTEMPTS: Final = 5
BACKOFF_SECONDS: Final = 10
_BACKOFF_SPREAD: Final = 1.25
LEASE_SECONDS: Final = 60
NEWS_SECONDS: Final = 600
"""An older message does not notify, as on pages."""
FAILURES_MAX: Final = 5
"""A subscription is removed after this many consecutive failures."""
TTL_SECONDS: Final = 24 * 3600
"""How long a push service holds a message for a browser that is off."""
NOTIFIED_AT_ONCE: Final = 100
NOTIFY_SECONDS: Final = 5
UNDER_WAY: Final = 4
"""How many attempts per person run at once, so that slow push services do not delay others.

Attempts are counted without a lock, so a few more may start at the same moment.
"""
UNANSWERED_UNDER_WAY: Final = 4
"""How many attempts run at once in total for browsers whose push services did not respond."""
MAX_AGE: Final = timedelta(hours=1)
_GONE: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.GONE})
_PASSING: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})
_SUCCESS: Final = range(200, 300)
_REFUSALS: Final = range(300, 500)


@dataclass(frozen=True, kw_only=True, slots=True)
class PushClaim:
    """An attempt; `number` counts the attempts so far and fences off earlier ones."""

    pk: int
    subscription: int
    user: int
    number: int
    endpoint: str = field(repr=False)
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)


def unnotified(now: datetime | Now) -> QuerySet[PushDelivery]:
    """Return deliveries that are due and that no worker has recently been notified of."""
    return PushDelivery.objects.filter(
        finished_at__isnull=True, due_at__lte=now, notify_at__lte=now
    )


def take_due(now: datetime) -> list[int]:
    """Return due deliveries that no worker has recently been notified of.

    At most NOTIFIED_AT_ONCE in total, and UNDER_WAY per person. Browsers whose push services did
    not respond come last.
    """
    due = unnotified(now)
    if not due.exists():
        return []
    of_browser = _unanswered(now).filter(subscription=OuterRef("subscription"))
    place = Window(RowNumber(), partition_by="subscription__user", order_by=["last", "due_at"])
    first = due.annotate(last=Exists(of_browser)).annotate(place=place)
    first = first.filter(place__lte=UNDER_WAY).order_by("last", "place", "due_at")
    ids = list(first.values_list("pk", flat=True)[:NOTIFIED_AT_ONCE])
    again = now + timedelta(seconds=NOTIFY_SECONDS)
    # The condition is repeated so that only one of the processes that found the row notifies.
    return [pk for pk in ids if due.filter(pk=pk).update(notify_at=again)]


def claim(pk: int) -> PushClaim | None:
    """Start an attempt; return None if it is not due, taken, or no longer wanted.

    No attempt starts while the person has UNDER_WAY others or, if the browser's push service did
    not respond, while the browser has another, or all such browsers have UNANSWERED_UNDER_WAY. What
    the person has since read, deleted, muted or left is not sent, and nothing is sent to a
    browser that is no longer signed in.
    """
    now = timezone.now()
    due = PushDelivery.objects.filter(pk=pk, finished_at__isnull=True, due_at__lte=now)
    row = due.select_related(
        "subscription__user", "message__chat", "message__sender_user__profile"
    ).first()
    if row is None or not _may_begin(row.subscription, now):
        return None
    key = server_key()
    if row.subscription.server_key != key.kid or not is_signed_in(row.subscription):
        row.subscription.delete()
        return None
    settings = settings_of(row.subscription.user_id)
    is_direct = bool(direct_chats({row.message.chat_id}))
    if not _is_wanted(row, settings, now, is_direct=is_direct):
        due.update(finished_at=now)
        return None
    lease = now + timedelta(seconds=LEASE_SECONDS)
    rows = due.filter(attempts=row.attempts)
    values = {"due_at": lease, "notify_at": lease, "leased_until": lease}
    if not rows.update(attempts=F("attempts") + 1, **values):
        return None
    subscription, message = row.subscription, row.message
    text = payload_of(row, settings, is_direct=is_direct)
    is_urgent = is_direct or row.is_mention or row.is_followed
    return PushClaim(
        pk=row.pk,
        subscription=subscription.pk,
        user=subscription.user_id,
        number=row.attempts + 1,
        endpoint=subscription.endpoint,
        body=encrypt(
            text,
            p256dh=from_base64url(subscription.p256dh),
            auth=from_base64url(subscription.auth),
        ),
        headers={
            "Authorization": authorization(subscription.endpoint, key),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(TTL_SECONDS),
            "Topic": topic_of(message.thread or "" if message.thread_only else message.chat_id),
            "Urgency": "high" if is_urgent else "normal",
        },
    )


def _may_begin(subscription: PushSubscription, now: datetime) -> bool:
    """Return whether another attempt may start for a browser."""
    leased = PushDelivery.objects.filter(finished_at__isnull=True, leased_until__gt=now)
    if leased.filter(subscription__user=subscription.user_id).count() >= UNDER_WAY:
        return False
    unanswered = _unanswered(now)
    if not unanswered.filter(subscription=subscription).exists():
        return True
    if leased.filter(subscription=subscription).exists():
        return False
    browsers = unanswered.values("subscription")
    return leased.filter(subscription__in=browsers).count() < UNANSWERED_UNDER_WAY


def _unanswered(now: datetime) -> QuerySet[PushDelivery]:
    """Return deliveries that are being retried because there was no response."""
    tried = PushDelivery.objects.filter(finished_at__isnull=True, http_status__isnull=True)
    # Workers of earlier releases set no `leased_until`: their first attempts run until `due_at`,
    # which is further away than a first retry, until shortly before it ends.
    retry = now + timedelta(seconds=BACKOFF_SECONDS * _BACKOFF_SPREAD)
    first = Q(attempts=1, leased_until__isnull=True, due_at__lte=retry)
    return tried.filter(Q(attempts__gt=1) | first)


def topic_of(place: str) -> str:
    """Return the topic of a chat or thread; a push service keeps only its newest message."""
    return to_base64url(hashlib.sha256(place.encode()).digest()[:24])


def attempt(claimed: PushClaim) -> int | None:
    """Send a message; return the status of the response, or None if there was none."""
    policy = current_policy()
    try:
        posted = post(claimed.endpoint, policy, body=claimed.body, headers=claimed.headers)
    except Unreachable:
        # The guard has logged why.
        return None
    return posted.status


@transaction.atomic
def finish(claimed: PushClaim, status: int | None) -> int | None:
    """Record the outcome of an attempt; return the person's next delivery to send, if any.

    An address that is gone takes its subscription with it. What may pass is tried again, up to
    ATTEMPTS times; any other failure counts against the subscription.
    """
    now = timezone.now()
    rows = PushDelivery.objects.filter(
        pk=claimed.pk, attempts=claimed.number, finished_at__isnull=True
    )
    subscription = PushSubscription.objects.filter(pk=claimed.subscription)
    if status in _GONE:
        subscription.delete()
    elif status in _SUCCESS:
        rows.update(finished_at=now, http_status=status)
        subscription.update(sent_at=now, failures=0)
    elif (status in _REFUSALS and status not in _PASSING) or claimed.number >= ATTEMPTS:
        if rows.update(finished_at=now, http_status=status):
            subscription.update(failures=F("failures") + 1)
            subscription.filter(failures__gte=FAILURES_MAX).delete()
        logger.warning("a push service did not accept a message: %s", status or "no response")
    else:
        pause = BACKOFF_SECONDS * 2 ** (claimed.number - 1) * random.uniform(1, _BACKOFF_SPREAD)  # noqa: S311 not a secret
        again = now + timedelta(seconds=pause)
        rows.update(due_at=again, notify_at=again, leased_until=None, http_status=status)
    following = PushDelivery.objects.filter(finished_at__isnull=True, due_at__lte=now)
    following = following.filter(subscription__user=claimed.user)
    return following.order_by("due_at").values_list("pk", flat=True).first()


def forget_old(now: datetime, *, limit: int) -> int:
    """Delete a batch of old deliveries; return how many."""
    oldest = PushDelivery.objects.order_by("pk").values_list("pk", "created_at")[:limit]
    pks = [pk for pk, created_at in oldest if created_at < now - MAX_AGE]
    return PushDelivery.objects.filter(pk__in=pks).delete()[0] if pks else 0


def _is_wanted(
    row: PushDelivery, settings: PersonSettings, now: datetime, *, is_direct: bool
) -> bool:
    message, user_id = row.message, row.subscription.user_id
    if message.deleted_at is not None or message.replaced_by is not None:
        return False
    if now - row.created_at > timedelta(seconds=NEWS_SECONDS) or is_quiet(settings, now):
        return False
    member = Participant.objects.filter(chat_id=message.chat_id, user_id=user_id).first()
    if member is None or not notifies(
        member,
        settings,
        is_direct=is_direct,
        is_mention=row.is_mention,
        is_followed=row.is_followed,
    ):
        return False
    return not _has_read(row, user_id)


def _has_read(row: PushDelivery, user_id: int) -> bool:
    message = row.message
    if message.thread_only:
        place = ThreadFollower.objects.filter(thread=message.thread, user_id=user_id)
        return place.filter(read_seq__gte=message.seq).exists()
    markers = ReadReceipt.objects.filter(chat_id=message.chat_id, user_id=user_id)
    return markers.filter(seq__gte=message.seq).exists()
