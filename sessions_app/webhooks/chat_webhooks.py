"""People's webhooks for their chats: create, change, test and delete. Synchronous.

A webhook belongs to a person, whichever credential created it, and receives what the person may
read. A person may have up to UAMP_WEBHOOKS_PER_USER. Its secret is returned once and stored
encrypted.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from audit_app.record import AuditAction, record
from chat_app.log.history import LOG_TYPES, chat_heads
from chat_app.members.membership import NotAMember, is_member
from sessions_app.access import rates
from sessions_app.models import Webhook, WebhookDelivery
from sessions_app.webhooks.chat_bodies import CURRENT, PING, PREVIOUS, PREVIOUS_UNTIL
from sessions_app.webhooks.deliveries import disable
from sessions_app.webhooks.encryption import decrypted, encrypted
from sessions_app.webhooks.payment_events import PAID, REFUNDED
from sessions_app.webhooks.receivers import check_literal, server_of
from sessions_app.webhooks.signature import new_secret

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from django.db.models import QuerySet

TYPES: Final = (*LOG_TYPES, PAID, REFUNDED)
"""The event types in a chat's log, and those of payments."""
FORMAT: Final = "chat"
STOPPED: Final = "Its creator stopped it."
KEEPS_SECRET: Final = timedelta(days=7)
"""The longest time that bodies are also signed with the previous secret."""
OPEN_AT_ONCE: Final = 100
"""With this many unsent deliveries, no more can be sent manually."""


class TooManyWebhooks(Exception):
    """The person has reached UAMP_WEBHOOKS_PER_USER."""


class WebhookStopped(Exception):
    """The webhook is disabled, and nothing is sent until it is enabled again."""


class TooManyUnsent(Exception):
    """The webhook has OPEN_AT_ONCE unsent deliveries."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WebhookRequest:
    """A request for a webhook; without `after`, it starts with events from now on."""

    chat_id: str
    url: str
    name: str = ""
    types: Sequence[str] = ()
    after: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class WebhookSecret:
    """A webhook with its secret, which is shown only once."""

    webhook: Webhook
    secret: str = field(repr=False)


def webhooks_of(user_id: int, *, chats: Collection[str] | None = None) -> QuerySet[Webhook]:
    """Return a person's webhooks, limited to `chats` if given."""
    rows = Webhook.objects.filter(user=user_id, chat__isnull=False)
    return rows if chats is None else rows.filter(chat__in=chats)


def deliveries_of(webhook: Webhook) -> QuerySet[WebhookDelivery]:
    """Return a webhook's past and pending deliveries."""
    return WebhookDelivery.objects.filter(webhook=webhook)


@transaction.atomic
def make(user_id: int, request: WebhookRequest, *, address: str = "") -> WebhookSecret:
    """Create a webhook for a chat that the person is in.

    Raises NotAMember, TooManyWebhooks, and RemoteProtocolError invalid_event for a forbidden
    address.
    """
    check_literal(request.url)
    if not is_member(request.chat_id, user_id):
        raise NotAMember
    # Of two concurrent requests, the second must count the first one's webhook.
    user = User.objects.select_for_update(no_key=True).get(pk=user_id)
    if webhooks_of(user_id).count() >= settings.UAMP_WEBHOOKS_PER_USER:
        raise TooManyWebhooks
    secret = new_secret()
    head = chat_heads([request.chat_id])[request.chat_id]
    row = Webhook.objects.create(
        chat_id=request.chat_id,
        user=user,
        name=request.name,
        principal=rates.person(user_id),
        counted_as=rates.person(user_id),
        format=FORMAT,
        url=request.url,
        secrets=encrypted({CURRENT: secret}),
        types=sorted(set(request.types)),
        queued_seq=head if request.after is None else min(request.after, head),
        look_at=timezone.now(),
    )
    record(user, AuditAction.WEBHOOK_MADE, row, detail=_facts(row), address=address)
    return WebhookSecret(webhook=row, secret=secret)


@transaction.atomic
def change(webhook: Webhook, values: dict[str, Any], *, by: User, address: str = "") -> Webhook:
    """Change whichever of `url`, `name`, `types`, `enabled` and `after` are given.

    A webhook that is enabled again resumes where it stopped. Raises LookupError if it was deleted,
    or if a person who has left the chat tries to restart it or could learn the length of the log,
    and RemoteProtocolError invalid_event for a forbidden address.
    """
    if "url" in values:
        check_literal(values["url"])
    row = Webhook.objects.select_for_update(no_key=True, of=("self",)).filter(pk=webhook.pk).first()
    if row is None or row.chat_id is None:
        raise LookupError("The webhook was deleted.")
    if ("after" in values or values.get("enabled")) and not is_member(row.chat_id, by.pk):
        raise LookupError("The person left the chat.")
    row.url = values.get("url", row.url)
    row.name = values.get("name", row.name)
    row.types = sorted(set(values.get("types", row.types)))
    if "after" in values:
        row.queued_seq = min(values["after"], chat_heads([row.chat_id])[row.chat_id])
    if values.get("enabled", row.disabled_at is None):
        row.disabled_at, row.disabled_reason, row.look_at = None, "", timezone.now()
    row.save(
        update_fields=[
            "url",
            "name",
            "types",
            "queued_seq",
            "disabled_at",
            "disabled_reason",
            "look_at",
        ]
    )
    if values.get("enabled") is False and row.disabled_at is None:
        disable(row.pk, STOPPED)
        row.refresh_from_db()
    record(by, AuditAction.WEBHOOK_CHANGED, row, detail=_facts(row), address=address)
    return row


@transaction.atomic
def delete(webhook: Webhook, *, by: User, address: str = "") -> None:
    """Delete a webhook with its past and pending deliveries."""
    record(by, AuditAction.WEBHOOK_DELETED, webhook, detail=_facts(webhook), address=address)
    webhook.delete()


@transaction.atomic
def rotate(webhook: Webhook, *, by: User, keep: timedelta, address: str = "") -> WebhookSecret:
    """Give a webhook a new secret; for `keep`, bodies are also signed with the previous one.

    Raises LookupError if the webhook was deleted.
    """
    row = Webhook.objects.select_for_update(no_key=True, of=("self",)).filter(pk=webhook.pk).first()
    if row is None:
        raise LookupError("The webhook was deleted.")
    before, secret = decrypted(row.secrets).get(CURRENT), new_secret()
    secrets = {CURRENT: secret}
    keep = min(keep, KEEPS_SECRET)
    if before is not None and keep > timedelta(0):
        until = int(time.time() + keep.total_seconds())
        secrets |= {PREVIOUS: before, PREVIOUS_UNTIL: str(until)}
    row.secrets = encrypted(secrets)
    row.save(update_fields=["secrets"])
    record(by, AuditAction.WEBHOOK_ROTATED, row, address=address)
    return WebhookSecret(webhook=row, secret=secret)


def ping(webhook: Webhook) -> WebhookDelivery:
    """Queue a `ping`.

    Raises WebhookStopped, TooManyUnsent, and LookupError if the webhook was deleted.
    """
    return _queue(webhook, WebhookDelivery(state=PING))


def redeliver(delivery: WebhookDelivery) -> WebhookDelivery:
    """Queue the content of a delivery again, as a new one; raises like `ping`."""
    again = WebhookDelivery(
        state=delivery.state, seq=delivery.seq, transfer_id=delivery.transfer_id
    )
    return _queue(delivery.webhook, again)


@transaction.atomic
def _queue(webhook: Webhook, new: WebhookDelivery) -> WebhookDelivery:
    row = Webhook.objects.select_for_update(no_key=True, of=("self",)).filter(pk=webhook.pk).first()
    if row is None:
        raise LookupError("The webhook was deleted.")
    if row.disabled_at is not None:
        raise WebhookStopped
    if deliveries_of(row).filter(finished_at__isnull=True).count() >= OPEN_AT_ONCE:
        raise TooManyUnsent
    Webhook.objects.filter(pk=row.pk).update(sent=F("sent") + 1)
    new.webhook, new.number = row, row.sent + 1
    new.save(force_insert=True)
    return new


def _facts(row: Webhook) -> str:
    """Describe a webhook for the audit, which shows no more of its address than its own page."""
    return f"{row.name!r} of {row.chat_id}: {server_of(row.url)}, {row.types or 'all'}"
