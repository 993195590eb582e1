"""The payer of the answers in a chat: each asker, an owner, the pool or an agent's sponsor.

Chats only store the rule; accounts and amounts are in payments_app.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Collection


class ChatPayer(NamedTuple):
    """The payer in a chat: asker, owner, pool or sponsor.

    `owner_id` is set for an owner, and `agreed_prices` for an owner and a pool.
    """

    rule: str
    owner_id: int | None
    agreed_prices: dict[str, Any] | None = None


def payers_of(chat_ids: Collection[str]) -> dict[str, ChatPayer]:
    """Return the current payers of chats; raises LookupError for a missing chat.

    An owner pays if they chose to and still own the chat; otherwise each asker pays.
    """
    if not chat_ids:
        return {}
    # Every turn of a priced agent runs this query: raw SQL costs a quarter of the ORM's time.
    marks = ", ".join(["%s"] * len(chat_ids))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT chat.id, chat.payer, member.user_id, chat.agreed_prices FROM chat_app_chat chat"  # noqa: S608 placeholders only
            " LEFT JOIN chat_app_participant member ON chat.payer = 'owner'"
            " AND member.chat_id = chat.id AND member.user_id = chat.payer_user_id"
            " AND member.role = 'owner' AND member.left_at IS NULL"
            " AND EXISTS (SELECT 1 FROM auth_user WHERE id = member.user_id AND is_active)"
            f" WHERE chat.id IN ({marks})",
            list(chat_ids),
        )
        payers = {
            str(pk): ChatPayer("asker", None)
            if payer == "owner" and owner is None
            else ChatPayer(payer, owner, json.loads(agreed) if agreed else None)
            for pk, payer, owner, agreed in cursor.fetchall()
        }
    if missing := set(chat_ids) - set(payers):
        raise LookupError(min(missing))
    return payers
