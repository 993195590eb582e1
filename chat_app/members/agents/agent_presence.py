"""Presence of agents that are switched on or off. Synchronous."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.utils import timezone

import uamp
from chat_app.ids import new_event_id
from chat_app.log import fanout
from chat_app.log.entries import milliseconds
from chat_app.models import Participant
from uamp import events as ev

if TYPE_CHECKING:
    from agents_app.models import Agent

MAX_CHATS: Final = 200
"""How many chats are notified when an agent comes or goes, the most recently active first.

Pages of other chats see it when they next read the chat.
"""


def notify_members(agent: Agent, **_kwargs: Any) -> None:
    """Send `presence.online` or `.offline` to the chats of an agent on commit."""
    event_type = ev.PresenceOnline if agent.is_online else ev.PresenceOffline
    now = milliseconds(timezone.now())
    chats = (
        Participant.objects.filter(agent=agent, left_at__isnull=True)
        .order_by("-chat__latest_at")
        .values_list("chat_id", flat=True)
    )
    for chat_id in chats[:MAX_CHATS]:
        event = event_type(
            event_id=new_event_id(),
            timestamp=now,
            user_id=agent.pk,
            username=agent.name,
            kind="agent",
            chat_id=chat_id,
            last_seen_at=None if agent.is_online else now,
        )
        signal = fanout.signal_message(chat_id=chat_id, frame=uamp.encode(event), is_watched=True)
        fanout.publish_on_commit(chat_id, [signal])
