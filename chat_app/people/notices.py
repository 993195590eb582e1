"""Notices to the open pages of a person that something of theirs is another. Synchronous."""

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
    """Send `person.changed` to the sockets that watch a person's chats, once this is committed.

    `added` and `removed`: they watch the chat from now on, or no more. The caller `waits` until it
    is sent, which keeps the order of two notices.
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
