"""Search of a chat by an agent, among the messages that it may see there. Synchronous."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from django.db.models import Q

from agents_app.tools.registry import FoundMessage
from chat_app.log.history import history_until
from chat_app.members.agents.triggers import is_addressed, visible_messages
from chat_app.members.membership import all_agent_members
from chat_app.search.search import search_messages
from sessions_app.models import Response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chat_app.members.membership import AgentMember

BATCH: Final = 100
"""How many hits are read at once to select those that are addressed to an agent."""
BATCHES: Final = 10


def search_visible(response_id: str, words: Sequence[str], *, limit: int) -> list[FoundMessage]:
    """Return the messages with all of the words that a response's agent may see, newest first.

    The message that it answers is left out. Messages addressed to an agent are returned only if
    they are among the newest BATCHES * BATCH hits.
    """
    response = Response.objects.select_related("chat").get(pk=response_id)
    members = all_agent_members(response.chat_id, asker=None)
    member = next((m for m in members if m.agent_id == response.agent_id), None)
    if member is None and response.chat.kind == "group":
        # It was removed while it answered.
        return []
    thread = response.request.get("thread")
    addressee = member if member is not None and member.context == "addressed" else None
    filters = _shown(response, member, thread)
    messages: list[FoundMessage] = []
    for _ in range(BATCHES):
        size = limit if addressee is None else BATCH
        rows = search_messages(
            response.chat_id, words, limit=size, without=response.message_id, filters=filters
        )
        messages += [
            FoundMessage(at=row.created_at, role=row.role, name=row.name, text=row.content)
            for row in rows
            if addressee is None
            or (thread is not None and thread in {row.thread, row.pk, row.version_of})
            or is_addressed(addressee, row.content, row.sender_agent_id)
        ]
        if len(messages) >= limit or len(rows) < size:
            break
        filters &= Q(seq__lt=rows[-1].seq)
    return messages[:limit]


def _shown(response: Response, member: AgentMember | None, thread: str | None) -> Q:
    """Return the condition of the messages that the chat, the thread and the scope show."""
    if member is not None and member.context == "last":
        read = partial(
            history_until,
            response.chat_id,
            message_id=response.message_id,
            limit=member.context_messages or 1,
        )
        visible = visible_messages(member, read(), () if thread is None else read(thread=thread))
        return Q(pk__in=[message.message_id for message in visible])
    shown = Q(thread_only__isnull=True)
    return shown if thread is None else shown | Q(thread=thread)
