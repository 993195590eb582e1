"""Helpers for webhooks of chats: creation, signatures, log of deliveries."""

from __future__ import annotations

import base64
import hmac
from typing import TYPE_CHECKING, Any

from sessions_app.models import WebhookDelivery

if TYPE_CHECKING:
    import httpx

    from chat_app.models import Chat
    from tests.live_server import Person
    from tests.webhook_receiver import Receiver

PAYLOAD = {"type": "chat.updated", "event_id": "evt_1", "timestamp": 1}
PATH = "/api/v1/webhooks"


def make(web: httpx.Client, who: Person, chat: Chat, receiver: Receiver, **more: Any) -> Any:
    """Make a webhook over REST; return it with its secret."""
    body = {"chat": chat.pk, "url": receiver.url, **more}
    response = web.post(PATH, json=body, headers=who.headers)
    assert response.status_code == 201, response.text
    assert "no-store" in response.headers["Cache-Control"]
    return response.json()


def say(web: httpx.Client, who: Person, chat: Chat, text: str) -> Any:
    """Send a message over REST; return it."""
    path = f"/api/v1/chats/{chat.pk}/messages"
    response = web.post(path, json={"content": text}, headers=who.headers)
    assert response.status_code == 201, response.text
    return response.json()["message"]


def signed_with(secret: str, headers: Any, body: bytes) -> str:
    """Return the signature that a receiver computes of a body (Standard Webhooks 1.0)."""
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()


def log_of(web: httpx.Client, who: Person, webhook: Any) -> list[Any]:
    """Return the deliveries of a webhook, the newest first."""
    path = f"{PATH}/{webhook['id']}/deliveries"
    deliveries: list[Any] = web.get(path, headers=who.headers).json()["data"]
    return deliveries


def all_sent() -> bool:
    return not WebhookDelivery.objects.filter(finished_at=None).exists()
