"""Epochs: marks by which clients notice that a log was replaced (docs/transports.md)."""

from __future__ import annotations

from chat_app.models import Chat
from chat_app.models.chats import new_epoch


def begin_epochs() -> int:
    """Give every log a new epoch; return how many there are.

    Call this after a restore: clients may have read entries that are missing from the backup and
    whose places will be reused. They are sent `resync`.
    """
    return Chat.objects.update(epoch=new_epoch())


def epoch_of(chat_id: str) -> str:
    """Return the epoch of a chat's log; empty for an unknown chat."""
    return Chat.objects.filter(pk=chat_id).values_list("epoch", flat=True).first() or ""
