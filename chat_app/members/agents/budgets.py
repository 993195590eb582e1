"""Budgets of chats and of agents in them: the most that their answers may cost.

Amounts are decimal strings in the currency of prices; the ledger tracks their use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Collection


class ChatBudget(NamedTuple):
    """The budget of an agent in a chat; without an agent, of all agents of the chat."""

    chat_id: str
    agent_id: str
    agent: str
    amount: str
    period: str


def budgets_of(chat_ids: Collection[str]) -> list[ChatBudget]:
    """Return the budgets of chats and of the agents in them, in one query."""
    if not chat_ids:
        return []
    # Every turn of a priced agent runs this query: raw SQL costs a quarter of the ORM's time.
    marks = ", ".join(["%s"] * len(chat_ids))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT member.chat_id, member.agent_id, agent.name, member.budget,"  # noqa: S608 placeholders only
            " member.budget_period FROM chat_app_participant member"
            " JOIN agents_app_agent agent ON agent.id = member.agent_id"
            " WHERE member.budget IS NOT NULL AND member.left_at IS NULL"
            f" AND member.chat_id IN ({marks})"
            " UNION ALL SELECT id, '', '', budget, budget_period FROM chat_app_chat"
            f" WHERE budget IS NOT NULL AND id IN ({marks})",
            [*chat_ids, *chat_ids],
        )
        return [ChatBudget(*row) for row in cursor.fetchall()]
