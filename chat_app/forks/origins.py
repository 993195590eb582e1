"""The origins of chats: the message of another chat up to which their history was copied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chat_app.ids import new_event_id
from chat_app.log.entries import milliseconds
from chat_app.members.chat_lists import chats_of
from chat_app.models import ChatOrigin
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Collection


def forked_event(fork: ChatOrigin) -> ev.ChatForked:
    """Return the event that announces the origin of a chat."""
    by = fork.forked_by
    at = milliseconds(fork.forked_at)
    return ev.ChatForked(
        event_id=new_event_id(),
        timestamp=at,
        chat_id=fork.chat_id,
        title=fork.chat.title,
        source=ev.ForkSource(
            chat_id=fork.source_id, message_id=fork.source_message, title=fork.source_title
        ),
        messages=fork.messages,
        agents_left_out=tuple(fork.agents_left_out) or None,
        by=None if by is None else ev.Actor(id=str(by.pk), name=by.get_username()),
        forked_at=at,
    )


def origins_of(chat_ids: Collection[str], reader: int) -> dict[str, dict[str, Any]]:
    """Return the origins of the chats that are forks, for a reader.

    `readable` says whether the reader is in the source.
    """
    rows = list(ChatOrigin.objects.filter(pk__in=chat_ids).select_related("forked_by"))
    if not rows:
        return {}
    sources = {row.source_id for row in rows if row.source_id}
    readable = set(chats_of(reader).filter(pk__in=sources).values_list("pk", flat=True))
    return {
        row.chat_id: {
            "chat_id": row.source_id,
            "message_id": row.source_message,
            "title": row.source_title,
            "messages": row.messages,
            "seq": row.seq,
            "agents_left_out": row.agents_left_out,
            "forked_by": None if row.forked_by is None else row.forked_by.get_username(),
            "forked_at": row.forked_at,
            "readable": row.source_id in readable,
        }
        for row in rows
    }
