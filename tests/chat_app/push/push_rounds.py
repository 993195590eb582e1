"""Browsers that subscribe, and rounds in which the server sends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.test import Client
from django.utils import timezone

from chat_app.models import MessageMention, PushDelivery
from chat_app.push import deliveries
from chat_app.push.news import queue_news
from chat_app.push.tasks import send_push

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from chat_app.models import Message

PATH = "/api/v1/me/push-subscriptions"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


def signed_in(user: User) -> Client:
    """Return a browser of a person."""
    client = Client(HTTP_USER_AGENT=FIREFOX)
    client.force_login(user)
    return client


def subscribe(client: Client, body: Any) -> Any:
    return client.post(PATH, json.dumps(body), content_type="application/json")


def send_all() -> None:
    """Do what a process and its workers do until nothing is due."""
    now = timezone.now()
    queue_news(now)
    while pks := deliveries.take_due(now):
        for pk in pks:
            send_push(pk=pk)


def make_due() -> None:
    """Let the time pass for which deliveries wait."""
    PushDelivery.objects.update(due_at=timezone.now(), notify_at=timezone.now())


def mention(message: Message, user: User) -> None:
    MessageMention.objects.create(message=message, chat=message.chat, user=user, seq=message.seq)
