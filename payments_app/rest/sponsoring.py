"""REST: the caller's agents whose answers to others they pay for, with their budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.response import Response

from agents_app import sponsorships
from agents_app.models import BudgetPeriod
from agents_app.rest.strict import StrictSerializer
from agents_app.rest.views import caller
from payments_app.money import Money
from payments_app.rest.accounts import agent_id_of, name_of
from payments_app.rest.edge import AmountField, PaymentView, checked, money, refusals
from payments_app.spending.budgets import budget_states

if TYPE_CHECKING:
    from rest_framework.request import Request


class BudgetSerializer(serializers.Serializer[Any]):
    """An owner's budget for an agent's answers to others, per period or in total."""

    period = serializers.ChoiceField(choices=BudgetPeriod.values)
    amount = AmountField()


class NewSponsorshipSerializer(StrictSerializer):
    """The body of PUT /api/payments/sponsorships/{agent}: all budgets, at least one."""

    budgets = BudgetSerializer(many=True)

    def validate_budgets(self, value: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Require at least one budget, and at most one for each period."""
        if not value:
            raise ValidationError("Send at least one budget. To stop sponsoring, use DELETE.")
        if len({budget["period"] for budget in value}) < len(value):
            raise ValidationError("Send only one budget for each period.")
        return value


class BudgetStateSerializer(BudgetSerializer):
    """A budget and how much of it is used."""

    spent = serializers.CharField()
    held = serializers.CharField()
    left = serializers.CharField()
    resets_at = serializers.DateTimeField(allow_null=True)


class SponsorshipSerializer(serializers.Serializer[Any]):
    """An agent that the caller sponsors."""

    agent = serializers.CharField()
    agent_id = serializers.CharField()
    currency = serializers.CharField()
    budgets = BudgetStateSerializer(many=True)


class SponsorshipListSerializer(serializers.Serializer[Any]):
    """All agents that the caller sponsors."""

    sponsorships = SponsorshipSerializer(many=True)


class SponsorshipsView(PaymentView):
    """The agents that the caller sponsors."""

    read_scope = "payments:read"

    @extend_schema(
        operation_id="list_sponsorships", responses={200: SponsorshipListSerializer, **refusals()}
    )
    def get(self, request: Request) -> Response:
        """Return the agents, and how much of each budget is used."""
        user_id = caller(request).pk
        mine = sponsorships.sponsored_by(user_id)
        return Response({"sponsorships": [_body(agent.pk, user_id) for agent in mine]})


class SponsorshipView(PaymentView):
    """Whether the caller pays for the answers of one of their agents to others."""

    write_scope = "payments:write"

    @extend_schema(
        operation_id="sponsor_agent",
        request=NewSponsorshipSerializer,
        responses={200: SponsorshipSerializer, **refusals(400, 403)},
    )
    def put(self, request: Request, agent: str) -> Response:
        """Pay for the agent in chats whose payer is the sponsor, within these budgets."""
        budgets = {
            budget["period"]: _positive(budget)
            for budget in checked(request, NewSponsorshipSerializer)["budgets"]
        }
        agent_id = agent_id_of(request, agent)
        try:
            sponsorships.sponsor(agent_id, caller(request), budgets)
        except sponsorships.NotTheOwner as error:
            raise PermissionDenied("Only the owner of an agent may sponsor it.") from error
        return Response(_body(agent_id, caller(request).pk))

    @extend_schema(operation_id="end_sponsorship", responses={204: None, **refusals(400, 403, 404)})
    def delete(self, request: Request, agent: str) -> Response:
        """Stop paying for the agent, which may also be named by its id."""
        for mine in sponsorships.sponsored_by(caller(request).pk):
            if agent in {mine.pk, mine.name}:
                sponsorships.sponsor(mine.pk, caller(request), {})
                return Response(status=204)
        raise Http404


def _positive(budget: dict[str, Any]) -> str:
    amount = money(budget)
    if not amount:
        raise ValidationError({"budgets": "A budget must be positive."})
    return str(amount)


def _body(agent_id: str, user_id: int) -> dict[str, Any]:
    states = budget_states(agent_id, user_id)
    return {
        "agent": name_of(agent_id),
        "agent_id": agent_id,
        "currency": "USD",
        "budgets": [
            {
                "period": state.period,
                "amount": str(state.amount),
                "spent": str(state.spent),
                "held": str(state.held),
                "left": str(
                    max(state.amount - state.spent - state.held, Money.zero(state.amount.asset))
                ),
                "resets_at": state.resets_at,
            }
            for state in states
        ],
    }
