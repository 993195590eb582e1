"""REST: the budgets of a chat and its agents, and their use (docs/members.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers

from agents_app.rest.problems import responses
from chat_app.members.agents.budgets import budgets_of
from chat_app.rest.edge import RestView, check_member
from chat_app.rest.paging import list_of, list_response, read_query
from chat_app.rest.serializers import NoQuery
from payments_app.money import DEFAULT_ASSET
from sessions_app.billing.chat_budgets import state_of

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.response import Response


class ChatBudgetSerializer(serializers.Serializer[Any]):
    """A budget, for all agents of the chat if none is named. Amounts are decimal strings."""

    agent_id = serializers.CharField(allow_null=True)
    agent = serializers.CharField(allow_null=True)
    amount = serializers.CharField()
    period = serializers.CharField(help_text="day (in UTC) or total")
    spent = serializers.CharField(help_text="The amount charged for answers in the period.")
    held = serializers.CharField(help_text="The amount reserved for running answers.")
    left = serializers.CharField()
    currency = serializers.CharField()


class BudgetsView(RestView):
    """The budgets of a chat."""

    read_scope = "chats:read"

    @extend_schema(
        operation_id="list_chat_budgets",
        responses={200: list_of(ChatBudgetSerializer), **responses(400, 404)},
    )
    def get(self, request: Request, chat_id: str) -> Response:
        """Return the budgets of the chat and of its agents."""
        read_query(request, NoQuery)
        check_member(request, chat_id)
        states = [state_of(budget, DEFAULT_ASSET) for budget in budgets_of([chat_id])]
        data = [
            {
                "agent_id": state.budget.agent_id or None,
                "agent": state.budget.agent or None,
                "amount": str(state.amount),
                "period": state.budget.period,
                "spent": str(state.spent),
                "held": str(state.held),
                "left": str(state.remaining),
                "currency": state.amount.asset,
            }
            for state in states
        ]
        return list_response(request, data, next_cursor=None, key="agent_id")
