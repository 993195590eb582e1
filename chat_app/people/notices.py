"""Notices to a person's open pages that something of theirs has changed. Synchronous."""

from __future__ import annotations

from django.utils import timezone

import uamp
from chat_app.ids import new_event_id
from chat_app.log import fanout
from chat_app.log.entries import milliseconds
from uamp import events as ev


def notify_person(
    user_id: int,
    subject: str,
    *,
    chat_id: str = "",
    added: bool = False,
    removed: bool = False,
    waits: bool = True,
) -> None:
    """Send `person.changed` to the sockets that watch a person's chats, on commit.

    With `added` or `removed` they start or stop watching the chat. With `waits` the caller waits
    until the notice is sent, which keeps two notices in order.
    """
    event = ev.PersonChanged(
        event_id=new_event_id(),
        timestamp=milliseconds(timezone.now()),
        subject=subject,
        chat_id=chat_id or None,
    )
    message = fanout.person_message(
        user_id,
        uamp.encode(event),
        added=chat_id if added else "",
        removed=chat_id if removed else "",
    )
    fanout.send_to_person_on_commit(message, waits=waits)
