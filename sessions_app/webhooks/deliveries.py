"""Delivery attempts: claimed, sent and recorded. Synchronous.

A webhook's states are sent in order: one is claimed after all earlier ones have ended.
"""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from agents_app.outbound.guard import post
from agents_app.outbound.rules import Unreachable, current_policy
from chat_app.log.deletions import has_changed
from chat_app.members.membership import is_member
from sessions_app.models import Webhook, WebhookDelivery
from sessions_app.states import DeliveryTrigger
from sessions_app.transitions import move
from sessions_app.webhooks import chat_bodies, formats
from sessions_app.webhooks.encryption import decrypted
from sessions_app.webhooks.signature import sign

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from django.db.models import QuerySet
    from django.db.models.functions import Now

logger = logging.getLogger(__name__)

# An attempt not recorded within this time counts as lost.
LEASE_SECONDS: Final = 60
BACKOFF_SECONDS: Final = (5, 3600)
_BACKOFF_SPREAD: Final = 1.25
NOTIFY_SECONDS: Final = 5
NOTIFIED_AT_ONCE: Final = 100
# The most concurrent attempts per person, so that slow receivers do not keep workers from the
# deliveries of others.
UNDER_WAY: Final = 4
# The most concurrent attempts in total for people whose receivers did not respond, so that many
# people with hanging receivers leave workers for others.
UNANSWERED_UNDER_WAY: Final = 8
DEACTIVATED: Final = "Its creator was deactivated."
LEFT: Final = "Its creator is no longer in the chat."
GONE: Final = "The entry of the log is no longer there."
TASK_UNAVAILABLE: Final = "The task is no longer available to its creator."
_SUCCESS: Final = range(200, 300)
# Statuses after which a receiver may accept the same body later; other refusals are final.
_PASSING: Final = frozenset({408, 425, 429})
_REFUSALS: Final = range(300, 500)


@dataclass(frozen=True, kw_only=True, slots=True)
class DeliveryClaim:
    """An attempt; `number` counts the attempts so far and fences off earlier ones."""

    pk: int
    webhook: int
    counted_as: str
    number: int
    url: str
    body: bytes
    headers: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptOutcome:
    """The outcome of an attempt; `status` is the HTTP status, or None without a response."""

    status: int | None
    error: str = ""

    @property
    def is_sent(self) -> bool:
        """Whether the receiver accepted it."""
        return self.status in _SUCCESS

    @property
    def is_final(self) -> bool:
        """Whether a retry would have the same outcome."""
        return self.status in _REFUSALS and self.status not in _PASSING


def claim(pk: int) -> DeliveryClaim | None:
    """Start an attempt; return None if it is not due or another worker has it.

    No attempt starts while the person has UNDER_WAY others or, if the person's receiver did not
    respond, while there are UNANSWERED_UNDER_WAY for all such people. Nothing is sent for people
    who were deactivated or have left the webhook's chat. A body whose text has since been edited or
    deleted is not sent; its state is queued again in its current form.
    """
    now = timezone.now()
    due = _due(now).filter(pk=pk)
    row = due.select_related("webhook__response", "webhook__user").first()
    if row is None or not _may_begin(row.webhook.counted_as, now):
        return None
    if (reason := refusal(row.webhook)) is not None:
        disable(row.webhook_id, reason)
        return None
    if (request := _request(row)) is None:
        return None
    lease = now + timedelta(seconds=LEASE_SECONDS)
    values = {"attempts": F("attempts") + 1, "due_at": lease, "leased_until": lease}
    if not due.filter(attempts=row.attempts).update(**values):
        return None
    body, headers = request
    return DeliveryClaim(
        pk=row.pk,
        webhook=row.webhook_id,
        counted_as=row.webhook.counted_as,
        number=row.attempts + 1,
        url=row.webhook.url,
        body=body,
        headers=headers,
    )


def _request(row: WebhookDelivery) -> tuple[bytes, dict[str, str]] | None:
    """Return the body and headers of an attempt, or None if nothing is to be sent.

    In that case the delivery was outdated and has been ended.
    """
    response = row.webhook.response
    if response is None:
        event = chat_bodies.event_of(row)
        if event is None:
            rows = WebhookDelivery.objects.filter(pk=row.pk)
            move(rows, DeliveryTrigger.FAIL, finished_at=timezone.now(), error=GONE)
            return None
        return event.body, chat_bodies.headers(row, event)
    if has_changed(response_id=response.pk, message_id=response.message_id, since=row.created_at):
        _queue_again(row)
        return None
    body = row.body.encode()
    return body, _headers(row, body, response.pk)


def _due(now: datetime) -> QuerySet[WebhookDelivery]:
    """Return deliveries that are due and whose webhook has no earlier unfinished ones."""
    before = WebhookDelivery.objects.filter(
        webhook=OuterRef("webhook"), number__lt=OuterRef("number"), finished_at__isnull=True
    )
    due = WebhookDelivery.objects.filter(finished_at__isnull=True, due_at__lte=now)
    return due.exclude(Exists(before))


def _may_begin(counted_as: str, now: datetime) -> bool:
    """Return whether another attempt may start for a person or an address's visitors."""
    leased = WebhookDelivery.objects.filter(finished_at__isnull=True, leased_until__gt=now)
    if leased.filter(webhook__counted_as=counted_as).count() >= UNDER_WAY:
        return False
    unanswered = _unanswered(now)
    if not unanswered.filter(webhook__counted_as=counted_as).exists():
        return True
    people = unanswered.values("webhook__counted_as")
    return leased.filter(webhook__counted_as__in=people).count() < UNANSWERED_UNDER_WAY


def _unanswered(now: datetime) -> QuerySet[WebhookDelivery]:
    """Return deliveries that are being retried because there was no response."""
    tried = WebhookDelivery.objects.filter(finished_at__isnull=True, http_status__isnull=True)
    # Workers of earlier releases set no `leased_until`: their first attempts run until `due_at`,
    # which is further away than a first retry ever is.
    retry = now + timedelta(seconds=BACKOFF_SECONDS[0] * _BACKOFF_SPREAD)
    first = Q(attempts=1, leased_until__isnull=True, due_at__lte=retry)
    return tried.filter(Q(attempts__gt=1) | first)


def is_unwelcome(webhook: Webhook) -> bool:
    """Return whether the person who set a webhook has been deactivated."""
    return webhook.user is not None and not webhook.user.is_active


def refusal(webhook: Webhook) -> str | None:
    """Return why a receiver gets no more deliveries, for its log; None if it does."""
    if is_unwelcome(webhook):
        return DEACTIVATED
    chat_id, user_id = webhook.chat_id, webhook.user_id
    if chat_id is not None and (user_id is None or not is_member(chat_id, user_id)):
        return LEFT
    return None


@transaction.atomic
def _queue_again(row: WebhookDelivery) -> None:
    """End a delivery with an outdated body, and have its state rendered again."""
    old = WebhookDelivery.objects.filter(pk=row.pk, attempts=row.attempts, finished_at__isnull=True)
    why = "A message of the task was changed. Its state is sent again."
    if move(old, DeliveryTrigger.FAIL, finished_at=timezone.now(), body="", error=why):
        Webhook.objects.filter(pk=row.webhook_id).update(seen="", look_at=timezone.now())


def _headers(row: WebhookDelivery, body: bytes, response_id: str) -> dict[str, str]:
    secrets = decrypted(row.webhook.secrets)
    about = {"taskId": response_id}
    signature = sign(body, url=row.webhook.url, delivery=f"{row.pk}", about=about)
    webhook_format = formats.find(row.webhook.format)
    headers = {
        "Content-Type": "application/json" if webhook_format is None else webhook_format.media_type,
        chat_bodies.SIGNATURE_HEADER: signature,
        "Authorization": f"Bearer {signature}",
    }
    if secrets.get("scheme") and secrets.get("credentials"):
        headers["Authorization"] = f"{secrets['scheme']} {secrets['credentials']}"
    if webhook_format is not None and secrets.get("token"):
        headers[webhook_format.token_header] = secrets["token"]
    return headers


def attempt(claimed: DeliveryClaim) -> AttemptOutcome:
    """Send the body; the lack of a response is an outcome as well."""
    try:
        posted = post(claimed.url, current_policy(), body=claimed.body, headers=claimed.headers)
    except Unreachable as error:
        return AttemptOutcome(status=None, error=str(error))
    return AttemptOutcome(status=posted.status)


@transaction.atomic
def finish(claimed: DeliveryClaim, outcome: AttemptOutcome) -> int | None:
    """Record the outcome of an attempt; return the person's next delivery to send, if any.

    After a final refusal or UAMP_WEBHOOK_ATTEMPTS attempts, the webhook is disabled.
    """
    now = timezone.now()
    rows = WebhookDelivery.objects.filter(
        pk=claimed.pk, attempts=claimed.number, finished_at__isnull=True
    )
    facts = {"http_status": outcome.status, "error": outcome.error, "leased_until": None}
    if outcome.is_sent:
        if not move(rows, DeliveryTrigger.SEND, finished_at=now, body="", **facts):
            return None
    elif outcome.is_final or claimed.number >= settings.UAMP_WEBHOOK_ATTEMPTS:
        if move(rows, DeliveryTrigger.FAIL, finished_at=now, body="", **facts):
            reason = outcome.error or f"The receiver answered {outcome.status}."
            disable(claimed.webhook, reason)
    else:
        shortest, longest = BACKOFF_SECONDS
        pause = min(longest, shortest * 2 ** (claimed.number - 1))
        pause *= random.uniform(1, _BACKOFF_SPREAD)  # noqa: S311 not a secret
        rows.update(due_at=now + timedelta(seconds=pause), **facts)
    following = _due(now).filter(webhook__counted_as=claimed.counted_as)
    return following.order_by("due_at").values_list("pk", flat=True).first()


@transaction.atomic
def disable(webhook: int, reason: str) -> None:
    """Stop all deliveries to a receiver."""
    now = timezone.now()
    Webhook.objects.filter(pk=webhook).update(disabled_at=now, disabled_reason=reason, look_at=None)
    move(
        WebhookDelivery.objects.filter(webhook=webhook, finished_at__isnull=True),
        DeliveryTrigger.FAIL,
        finished_at=now,
        body="",
        error="The webhook was disabled.",
    )
    logger.warning("webhook %s was disabled: %s", webhook, reason)


def unnotified(now: datetime | Now) -> QuerySet[WebhookDelivery]:
    """Return deliveries that are due and that no worker has recently been notified of."""
    return WebhookDelivery.objects.filter(
        finished_at__isnull=True, due_at__lte=now, notify_at__lte=now
    )


def take_due() -> list[int]:
    """Return due deliveries that no worker has recently been notified of.

    At most NOTIFIED_AT_ONCE in total, and UNDER_WAY per person. People whose receivers did not
    respond come last.
    """
    now = timezone.now()
    if not unnotified(now).exists():
        return []
    due = _due(now).filter(notify_at__lte=now)
    place = Window(RowNumber(), partition_by="webhook__counted_as", order_by="due_at")
    of_person = _unanswered(now).filter(webhook__counted_as=OuterRef("webhook__counted_as"))
    first = due.annotate(place=place, last=Exists(of_person)).filter(place__lte=UNDER_WAY)
    first = first.order_by("last", "place", "due_at")
    ids = list(first.values_list("pk", flat=True)[:NOTIFIED_AT_ONCE])
    again = now + timedelta(seconds=NOTIFY_SECONDS)
    # The condition is repeated so that only one of the processes that found the row notifies.
    return [pk for pk in ids if due.filter(pk=pk).update(notify_at=again)]
