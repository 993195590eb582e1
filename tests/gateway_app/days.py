"""Days that go by."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from chat_app.models import Chat
from sessions_app.models import Session


def let_a_day_go_by() -> None:
    """Let all sessions and chats have been used two days ago."""
    Session.objects.update(seen_at=timezone.now() - timedelta(days=2))
    Chat.objects.update(latest_at=timezone.now() - timedelta(days=2))
