"""The payer of the answers in a chat: each asker, one owner, the pool or an agent's sponsor.

Chats only store the rule; accounts and amounts are in payments_app.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Collection


class ChatPayer(NamedTuple):
    """The payer in a chat: asker, owner, pool or sponsor; with `owner` the owner who said so."""

    rule: str
    owner_id: int | None


def payers_of(chat_ids: Collection[str]) -> dict[str, ChatPayer]:
    """Return the payers of chats now; LookupError without a chat.

    An owner pays who chose it and is an owner still; else each asker pays.
    """
    if not chat_ids:
        return {}
    # Every turn of an agent with a price asks this: SQL costs a quarter of what the ORM does.
    marks = ", ".join(["%s"] * len(chat_ids))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT chat.id, chat.payer, member.user_id FROM chat_app_chat chat"  # noqa: S608 marks only
            " LEFT JOIN chat_app_participant member ON chat.payer = 'owner'"
            " AND member.chat_id = chat.id AND member.user_id = chat.payer_user_id"
            " AND member.role = 'owner' AND member.left_at IS NULL"
            " AND EXISTS (SELECT 1 FROM auth_user WHERE id = member.user_id AND is_active)"
            f" WHERE chat.id IN ({marks})",
            list(chat_ids),
        )
        found = {
            str(pk): ChatPayer("asker" if payer == "owner" and owner is None else payer, owner)
            for pk, payer, owner in cursor.fetchall()
        }
    if missing := set(chat_ids) - set(found):
        raise LookupError(min(missing))
    return found
