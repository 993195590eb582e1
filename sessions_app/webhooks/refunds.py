"""Refunds of answers as deliveries to the webhooks of their chat.

A refund has no entry in the log. Its deliveries are written in its transaction, so each webhook
that is enabled then gets it once, after the commit, and none if the refund is rolled back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import F

from chat_app.log.log_pages import end_place
from sessions_app.models import Webhook, WebhookDelivery
from sessions_app.webhooks.payment_events import REFUNDED

if TYPE_CHECKING:
    from payments_app.services import AnswerRefund


@transaction.atomic
def queue_refund(refund: AnswerRefund) -> None:
    """Queue a refund for the enabled webhooks of its chat, payer's and payee's alike."""
    rows = Webhook.objects.filter(chat=refund.chat_id, disabled_at__isnull=True)
    webhooks = list(rows.select_for_update(no_key=True, of=("self",)).order_by("pk"))
    due = [row for row in webhooks if not row.types or REFUNDED in row.types]
    if not due:
        return
    seq = end_place(refund.chat_id, refund.response_id)
    Webhook.objects.filter(pk__in=[row.pk for row in due]).update(sent=F("sent") + 1)
    WebhookDelivery.objects.bulk_create(
        WebhookDelivery(
            webhook=row,
            number=row.sent + 1,
            state=REFUNDED,
            seq=seq,
            transfer_id=refund.transfer_id,
        )
        for row in due
    )
