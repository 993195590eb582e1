"""What a list of chats shows of each: unread messages, the last message, and who is there.

The law: the number of queries does not depend on the number of chats, and unread is derived from
the marker, never counted up and down (notes/ux.md §2.6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.db.models import IntegerField, OuterRef, Subquery, Value
from django.db.models.functions import Coalesce, Substr

from agents_app.pricing import read_pricing
from chat_app.models import Message, Participant, ReadReceipt
from chat_app.selectors import online_user_ids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet

    from agents_app.pricing import Pricing
    from chat_app.models import Chat

UNREAD_MAX: Final = 100
PREVIEW_CHARS: Final = 200


class CountOf(Subquery):
    """The number of rows of a subquery; with a limit in it, counting stops there."""

    template = "(SELECT COUNT(*) FROM (%(subquery)s) counted)"
    output_field = IntegerField()


def with_unread(chats: QuerySet[Chat], user_id: int) -> QuerySet[Chat]:
    """Annotate chats with `unread`: messages of others behind the marker, at most UNREAD_MAX.

    A person without a marker has read nothing.
    """
    marker = ReadReceipt.objects.filter(chat=OuterRef("chat_id"), user_id=user_id).values("seq")
    unread = (
        Message.objects.filter(chat=OuterRef("pk"))
        .exclude(sender_user_id=user_id)
        .filter(seq__gt=Coalesce(Subquery(marker), Value(0)))
        .order_by()
        .values("pk")[:UNREAD_MAX]
    )
    newest = Message.objects.filter(chat=OuterRef("pk")).order_by("-seq").values("pk")[:1]
    return chats.annotate(unread=CountOf(unread), newest_id=Subquery(newest))


def chats_data(chats: Sequence[Any]) -> list[dict[str, Any]]:
    """Return chats, annotated by `with_unread`, as ChatSerializer describes them."""
    members = _members([chat.pk for chat in chats])
    previews = _previews([chat.newest_id for chat in chats if chat.newest_id])
    return [
        {
            "id": chat.pk,
            "title": chat.title,
            "kind": chat.kind,
            "payer": chat.payer,
            "created_at": chat.created_at,
            "latest_at": chat.latest_at,
            "last_seq": chat.last_seq,
            "epoch": chat.epoch,
            "unread": chat.unread,
            "preview": previews.get(chat.newest_id),
            "participants": members.get(chat.pk, []),
        }
        for chat in chats
    ]


def _previews(message_ids: list[str]) -> dict[str, dict[str, str]]:
    rows = Message.objects.filter(pk__in=message_ids).values_list(
        "pk", "name", Substr("content", 1, PREVIEW_CHARS)
    )
    return {pk: {"name": name, "content": content} for pk, name, content in rows}


def _members(chat_ids: list[str]) -> dict[str, list[dict[str, Any]]]:
    rows = list(
        Participant.objects.filter(chat_id__in=chat_ids, left_at__isnull=True)
        .select_related("user", "agent")
        .order_by("pk")
    )
    online = online_user_ids({row.user_id for row in rows if row.user_id is not None})
    members: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        members.setdefault(row.chat_id, []).append(participant_data(row, online=online))
    return members


def participant_data(row: Participant, *, online: set[int]) -> dict[str, Any]:
    """Return a member as ParticipantSerializer describes it; `online` are ids of people."""
    if row.user is not None:
        return {
            "participant_id": row.pk,
            "kind": "user",
            "id": str(row.user_id),
            "name": row.user.get_username(),
            "role": row.role,
            "online": row.user_id in online,
        }
    return {
        "participant_id": row.pk,
        "kind": "agent",
        "id": row.agent_id,
        "name": str(row.agent),
        "role": row.role,
        "trigger": row.trigger,
        "pricing": pricing_data(read_pricing(row.agent.pricing)) if row.agent else None,
    }


def pricing_data(pricing: Pricing) -> dict[str, Any] | None:
    """Return prices as PricingSerializer describes them; None for an agent that is free."""
    return None if pricing.is_free else msgspec.to_builtins(pricing)
