"""Facts for the list of chats: unread messages, the last message, members, presence.

Neither the number of queries depends on the number of chats, nor the cost of a chat on its length.
Unread counts are derived from the marker rather than maintained: a counter that missed one message
would stay wrong forever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from django.conf import settings
from django.db import connection
from django.db.models.functions import Substr

from agents_app.pricing import read_pricing
from agents_app.providers.options import takes_calls
from chat_app.forks.origins import origins_of
from chat_app.log.homes import guests_among
from chat_app.members.avatars import avatar_url
from chat_app.members.presence import online_user_ids
from chat_app.members.rights import RIGHTS
from chat_app.models import ContextScope, Message, Participant
from chat_app.people.profiles import profile_data

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from agents_app.pricing import Pricing
    from chat_app.models import Chat

UNREAD_MAX: Final = 100
UNREAD_WINDOW: Final = 1000
THREADS_WINDOW: Final = 200
PREVIEW_CHARS: Final = 200


class _News(NamedTuple):
    """A person's unread messages in a chat, its last message, and whether it is a fork.

    `last_seq` is the end of the log at which everything was counted: continuing to count from an
    earlier place would count a message twice.
    """

    unread: int = 0
    newest_id: str | None = None
    unread_replies: int = 0
    unread_mentions: int = 0
    is_fork: int | None = None
    last_seq: int = 0


# The marker is read once per chat and bounds the index range. Limits bound the cost of one chat,
# however long it is, however far behind its reader, and however much was deleted or replaced: such
# messages are skipped only within what a limit has taken.
_NEWS: Final = """
SELECT chat.id, (
    SELECT COUNT(*) FROM (
        SELECT 1 FROM (
            SELECT message.sender_user_id, message.deleted_at, message.replaced_by
            FROM chat_app_message message
            WHERE message.chat_id = chat.id AND message.thread_only IS NULL
                AND message.seq > COALESCE((
                SELECT receipt.seq FROM chat_app_readreceipt receipt
                WHERE receipt.chat_id = chat.id AND receipt.user_id = %s
            ), 0)
            ORDER BY message.seq DESC LIMIT %s
        ) newest
        WHERE newest.deleted_at IS NULL AND newest.replaced_by IS NULL
            AND (newest.sender_user_id IS NULL OR newest.sender_user_id <> %s)
        LIMIT %s
    ) counted
), (
    SELECT newest.id FROM (
        SELECT message.id, message.deleted_at, message.replaced_by
        FROM chat_app_message message
        WHERE message.chat_id = chat.id AND message.thread_only IS NULL
        ORDER BY message.seq DESC LIMIT %s
    ) newest
    WHERE newest.deleted_at IS NULL AND newest.replaced_by IS NULL
    LIMIT 1
), (
    SELECT COUNT(*) FROM (
        SELECT 1 FROM (
            SELECT root_id FROM chat_app_messagethread thread
            WHERE thread.chat_id = chat.id ORDER BY thread.last_seq DESC LIMIT %s
        ) latest
        JOIN chat_app_threadfollower follower
            ON follower.thread_id = latest.root_id AND follower.user_id = %s
        JOIN chat_app_message reply
            ON reply.thread = latest.root_id AND reply.seq > follower.read_seq
        WHERE reply.thread_only IS NOT NULL AND reply.deleted_at IS NULL
            AND reply.replaced_by IS NULL
            AND (reply.sender_user_id IS NULL OR reply.sender_user_id <> %s)
        LIMIT %s
    ) counted
), (
    SELECT COUNT(*) FROM (
        SELECT 1 FROM chat_app_messagemention mention
        WHERE mention.chat_id = chat.id AND mention.user_id = %s AND mention.seq > COALESCE((
            SELECT receipt.seq FROM chat_app_readreceipt receipt
            WHERE receipt.chat_id = chat.id AND receipt.user_id = %s
        ), 0)
        LIMIT %s
    ) counted
), (
    SELECT 1 FROM chat_app_chatorigin origin WHERE origin.chat_id = chat.id
), chat.last_seq
FROM chat_app_chat chat WHERE chat.id IN ({marks})"""


def _news(chat_ids: list[str], user_id: int) -> dict[str, _News]:
    """Return the unread news of each chat for a person; without a marker, everything is unread."""
    if not chat_ids:
        return {}
    statement = _NEWS.format(marks=", ".join(["%s"] * len(chat_ids)))
    with connection.cursor() as cursor:
        of_chat = [user_id, UNREAD_WINDOW, user_id, UNREAD_MAX]
        of_threads = [THREADS_WINDOW, user_id, user_id, UNREAD_MAX]
        of_mentions = [user_id, user_id, UNREAD_MAX]
        cursor.execute(statement, [*of_chat, UNREAD_WINDOW, *of_threads, *of_mentions, *chat_ids])
        return {chat_id: _News(*counted) for chat_id, *counted in cursor}


def chats_data(chats: Sequence[Chat], user_id: int) -> list[dict[str, Any]]:
    """Return chats for a person, as described by ChatSerializer.

    Deleted messages and former versions of answers do not count. `unread` counts messages of others
    among the UNREAD_WINDOW newest after the marker, up to UNREAD_MAX; `unread_replies` those in the
    threads that the person follows, among the THREADS_WINDOW most recently active;
    `unread_mentions` messages after the marker that mention the person. `preview` is the last of
    the UNREAD_WINDOW newest messages.
    """
    chat_ids = [chat.pk for chat in chats]
    news = _news(chat_ids, user_id)
    members = _members(chat_ids)
    names = {
        row.user_id: row.user.get_username()
        for rows in members.values()
        for row in rows
        if row.user_id is not None and row.user is not None
    }
    away = guests_among(names)
    online = online_user_ids(
        {row.user_id for rows in members.values() for row in rows if row.user_id is not None}
    )
    # Most lists contain no fork, which saves the query.
    origins = origins_of([chat_id for chat_id, new in news.items() if new.is_fork], user_id)
    previews = _previews([new.newest_id for new in news.values() if new.newest_id])
    return [
        {
            "id": chat.pk,
            "title": chat.title,
            "kind": chat.kind,
            "home": chat.home,
            "payer": chat.payer,
            "only_owners_pin": bool(chat.only_owners_pin),
            "description": chat.description or "",
            "avatar": chat.avatar,
            "avatar_url": avatar_url(chat.avatar),
            "agents_quiet": bool(chat.agents_quiet),
            "agent_hops": settings.UAMP_AGENT_HOPS if chat.agent_hops is None else chat.agent_hops,
            "budget": chat.budget,
            "budget_period": chat.budget_period,
            **_member_facts(chat, members.get(chat.pk, []), user_id),
            "created_at": chat.created_at,
            "latest_at": chat.latest_at,
            "last_seq": news[chat.pk].last_seq,
            "epoch": chat.epoch,
            "unread": news[chat.pk].unread,
            "unread_replies": news[chat.pk].unread_replies,
            "unread_mentions": news[chat.pk].unread_mentions,
            "forked_from": origins.get(chat.pk),
            "preview": previews.get(news[chat.pk].newest_id or ""),
            "participants": [
                participant_data(row, online=online, away=away) for row in members.get(chat.pk, [])
            ],
        }
        for chat in chats
    ]


def _member_facts(chat: Chat, members: Sequence[Participant], user_id: int) -> dict[str, Any]:
    """Return a person's role, rights, notification settings and place of a chat in their list."""
    membership = next((row for row in members if row.user_id == user_id), None)
    return {
        "role": membership.role if membership else "",
        # Members of a mirror have no rights in it (`members.rights`).
        "rights": sorted(RIGHTS[membership.role]) if membership and chat.home is None else [],
        "muted": membership is not None and membership.muted_at is not None,
        "pinned": membership is not None and membership.pinned_at is not None,
        "archived": membership is not None
        and membership.archived_at is not None
        and chat.latest_at <= membership.archived_at,
        "marked_unread": membership is not None and membership.marked_unread,
        "notifications": (membership.notifications if membership else None) or "",
    }


def _previews(message_ids: list[str]) -> dict[str, dict[str, str]]:
    rows = Message.objects.filter(pk__in=message_ids).values_list(
        "pk", "name", Substr("content", 1, PREVIEW_CHARS)
    )
    return {pk: {"name": name, "content": content} for pk, name, content in rows}


def _members(chat_ids: list[str]) -> dict[str, list[Participant]]:
    rows = (
        Participant.objects.filter(chat_id__in=chat_ids, left_at__isnull=True)
        .select_related("user__profile", "agent")
        .order_by("pk")
    )
    members: dict[str, list[Participant]] = {}
    for row in rows:
        members.setdefault(row.chat_id, []).append(row)
    return members


def participant_data(
    row: Participant, *, online: set[int], away: Collection[int] = ()
) -> dict[str, Any]:
    """Return a member as described by ParticipantSerializer.

    `online` holds ids of people, and `away` those of people of other servers.
    """
    if row.user is not None:
        return {
            "participant_id": row.pk,
            "kind": "user",
            "id": str(row.user_id),
            "name": row.user.get_username(),
            "role": row.role,
            "joined_at": row.joined_at,
            "online": row.user_id in online,
            **profile_data(row.user),
            **({"takes_calls": False} if row.user_id in away else {}),
        }
    return {
        "participant_id": row.pk,
        "kind": "agent",
        "id": row.agent_id,
        "name": str(row.agent),
        "role": row.role,
        "joined_at": row.joined_at,
        "online": row.agent is not None and row.agent.is_online,
        "trigger": row.trigger,
        "keywords": row.keywords or [],
        "context": row.context or ContextScope.CHAT,
        "context_messages": row.context_messages,
        "budget": row.budget,
        "budget_period": row.budget_period,
        "pricing": pricing_data(read_pricing(row.agent.pricing)) if row.agent else None,
        "takes_calls": bool(row.agent and takes_calls(row.agent.provider, row.agent.options)),
    }


def pricing_data(pricing: Pricing) -> dict[str, Any] | None:
    """Return prices as described by PricingSerializer; None for an agent that is free."""
    return None if pricing.is_free else msgspec.to_builtins(pricing)
