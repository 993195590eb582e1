"""The marks by which a client knows that a log is not the one that it read (docs/transports.md)."""

from __future__ import annotations

from chat_app.models import Chat
from chat_app.models.chats import new_epoch


def begin_epochs() -> int:
    """Give all logs a new epoch; return how many there are.

    After a restore: a client may have read entries that the backup does not have, and places in
    the log that get other ones. It is sent `resync`.
    """
    return Chat.objects.update(epoch=new_epoch())
