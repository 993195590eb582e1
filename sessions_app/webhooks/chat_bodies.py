"""The delivery of one event of a chat: its body, and the headers that prove it.

The body is JSON, `{id, type, timestamp, webhook_id, chat_id, seq, data}`: `data` is the event as a
socket has it (UAMP §7), read from the log for each attempt, so that the words of a message that was
deleted meanwhile are not sent. `id` is the event's own: it is the same whenever it is sent again.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from chat_app.log.log_pages import entry_at
from sessions_app.webhooks.encryption import decrypted
from sessions_app.webhooks.signature import sign, symmetric

if TYPE_CHECKING:
    from datetime import datetime

    from sessions_app.models import Webhook, WebhookDelivery

SIGNATURE_HEADER: Final = "X-UAMP-Signature"
BODY_BYTES: Final = 1024 * 1024
PING: Final = "ping"
"""The type of what a person sends to try a webhook."""
CURRENT, PREVIOUS, PREVIOUS_UNTIL = "secret", "previous", "previous_until"
"""Names in the secrets of a webhook; the last one is in Unix seconds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EventBody:
    """A body, and the id of the event that it is of."""

    event_id: str
    body: bytes


def event_of(delivery: WebhookDelivery) -> EventBody | None:
    """Return what is sent; None where its entry of the log is no longer there.

    An event of more than BODY_BYTES is sent without `data`: its receiver reads it by its `seq`.
    """
    webhook, seq = delivery.webhook, delivery.seq
    data: dict[str, Any]
    if seq is None:
        at, event_id, data = delivery.created_at, f"ping_{delivery.pk}", {"name": webhook.name}
    else:
        entry = entry_at(webhook.chat_id or "", seq)
        if entry is None:
            return None
        at, event_id = entry.at, str(entry.payload["event_id"])
        data = {**entry.payload, "seq": seq}
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


def headers(delivery: WebhookDelivery, event: EventBody) -> dict[str, str]:
    """Return the headers of an attempt; raises OSError and ValueError for a bad key file."""
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
    """Return the secrets of a webhook that are in force, the newest first."""
    secrets = decrypted(webhook.secrets)
    keys = [secrets[CURRENT]] if CURRENT in secrets else []
    if PREVIOUS in secrets and now < int(secrets[PREVIOUS_UNTIL]):
        keys.append(secrets[PREVIOUS])
    return keys


def _utc(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
