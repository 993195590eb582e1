"""Presence of agents that are switched on or off. Synchronous."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import Exists, OuterRef
from django.utils import timezone

import uamp
from agents_app.models import Agent
from chat_app.ids import new_event_id
from chat_app.log import fanout
from chat_app.log.entries import milliseconds
from chat_app.models import Participant
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Collection

    from django.db.models import QuerySet

MAX_CHATS: Final = 200
"""How many chats are notified when an agent comes or goes, the most recently active first.

Pages of other chats see it when they next read the chat.
"""


def notify_members(agents: Collection[Agent], **_kwargs: Any) -> None:
    """Send `presence.online` or `.offline` to the chats of agents on commit."""
    in_chats = _memberships().filter(agent=OuterRef("pk"))
    listed = {agent.pk: agent for agent in agents}
    members = Agent.objects.filter(Exists(in_chats), pk__in=listed).values_list("pk", flat=True)
    for agent_id in members:
        _notify(listed[agent_id])


def _memberships() -> QuerySet[Participant]:
    return Participant.objects.filter(left_at__isnull=True)


def _notify(agent: Agent) -> None:
    event_type = ev.PresenceOnline if agent.is_online else ev.PresenceOffline
    now = milliseconds(timezone.now())
    rows = _memberships().filter(agent=agent).order_by("-chat__latest_at")
    for chat_id in rows.values_list("chat_id", flat=True)[:MAX_CHATS]:
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
