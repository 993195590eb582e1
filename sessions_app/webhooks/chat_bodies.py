"""The delivery of a chat event: its body, and the headers that authenticate it.

The body is JSON, `{id, type, timestamp, webhook_id, chat_id, seq, data}`. `data` is the event as
sent on a socket (UAMP §7), read from the log for each attempt, so that the text of a message
deleted in the meantime is not sent. The `data` of a payment is what its reader may see of it. `id`
is the event's own id, the same for every attempt.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from chat_app.log.log_pages import ENDS, entry_at
from sessions_app.webhooks.encryption import decrypted
from sessions_app.webhooks.payment_events import PAID, REFUNDED, payment_of, refund_event
from sessions_app.webhooks.signature import sign, symmetric
from uamp.digital_source import AI_MADE

if TYPE_CHECKING:
    from datetime import datetime

    from sessions_app.models import Webhook, WebhookDelivery

SIGNATURE_HEADER: Final = "X-UAMP-Signature"
BODY_BYTES: Final = 1024 * 1024
PING: Final = "ping"
"""The event type for trying out a webhook."""
CURRENT, PREVIOUS, PREVIOUS_UNTIL = "secret", "previous", "previous_until"
"""Keys in a webhook's secrets; the last one is a time in Unix seconds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EventBody:
    """A body, and the id of its event."""

    event_id: str
    body: bytes


def event_of(delivery: WebhookDelivery) -> EventBody | None:
    """Return the body to send, or None if its log entry no longer exists.

    An event larger than BODY_BYTES is sent without `data`; its receiver can read it by `seq`.
    """
    webhook, seq = delivery.webhook, delivery.seq
    data: dict[str, Any]
    if delivery.state == REFUNDED:
        refunded = refund_event(delivery.transfer_id, webhook.user_id)
        if refunded is None:
            return None
        at, event_id, data = refunded
    elif seq is None:
        at, event_id, data = delivery.created_at, f"ping_{delivery.pk}", {"name": webhook.name}
    else:
        entry = entry_at(webhook.chat_id or "", seq)
        if entry is None:
            return None
        at, event_id = entry.at, str(entry.payload["event_id"])
        data = {**_marked(entry.type, entry.payload), "seq": seq}
        if delivery.state == PAID:
            paid = payment_of(entry.response_id, webhook.user_id)
            if paid is None:
                return None
            event_id, data = f"paid_{entry.response_id}", paid
    members = {
        "id": event_id,
        "type": delivery.state,
        "timestamp": _utc(at),
        "webhook_id": str(webhook.pk),
        "chat_id": webhook.chat_id,
        "seq": seq,
    }
    body = msgspec.json.encode({**members, "data": data})
    if len(body) > BODY_BYTES:
        body = msgspec.json.encode({**members, "data": None})
    return EventBody(event_id=event_id, body=body)


def _marked(event_type: str, payload: dict[str, Any]) -> dict[str, Any]:
    """Return an event whose agent's content is marked as made by AI.

    Entries of earlier servers have no mark, and REST marks their messages too.
    """
    if event_type == "message.created":
        message = payload["message"]
        if message.get("sender_kind") != "agent":
            return payload
        return {**payload, "message": {"digital_source_type": AI_MADE, **message}}
    if event_type in ENDS and _has_output(payload):
        return {"digital_source_type": AI_MADE, **payload}
    return payload


def _has_output(payload: dict[str, Any]) -> bool:
    response = payload.get("response") or {}
    return bool(response.get("output") or payload.get("partial_output"))


def headers(delivery: WebhookDelivery, event: EventBody) -> dict[str, str]:
    """Return the headers of an attempt; raises OSError and ValueError if a key file is bad."""
    webhook, now = delivery.webhook, int(time.time())
    about = {"webhookId": str(webhook.pk)}
    return {
        "Content-Type": "application/json",
        SIGNATURE_HEADER: sign(event.body, url=webhook.url, delivery=f"{delivery.pk}", about=about),
        "webhook-id": event.event_id,
        "webhook-timestamp": str(now),
        "webhook-signature": symmetric(
            event.body, event_id=event.event_id, at=now, keys=_keys(webhook, now)
        ),
    }


def _keys(webhook: Webhook, now: int) -> list[str]:
    """Return the valid secrets of a webhook, newest first."""
    secrets = decrypted(webhook.secrets)
    keys = [secrets[CURRENT]] if CURRENT in secrets else []
    if PREVIOUS in secrets and now < int(secrets[PREVIOUS_UNTIL]):
        keys.append(secrets[PREVIOUS])
    return keys


def _utc(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
