"""REST: what the caller's remote agents may still be paid on other servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.response import Response

from agents_app.rest.strict import StrictSerializer
from agents_app.rest.views import caller
from agents_app.sponsorships import NotTheOwner
from payments_app.rest.accounts import agent_id_of, name_of
from payments_app.rest.edge import AmountField, PaymentView, checked, money, refusals
from payments_app.spending.onward import NotRemote, budget_of, set_budget

if TYPE_CHECKING:
    from rest_framework.request import Request

    from payments_app.spending.onward import OnwardBudget


class NewOnwardBudgetSerializer(StrictSerializer):
    """The body of PUT /api/payments/onward/{agent}: what may be paid from now on."""

    amount = AmountField()


class OnwardBudgetSerializer(serializers.Serializer[Any]):
    """The remaining budget for paying a remote agent's own server, and what it was paid."""

    agent = serializers.CharField()
    agent_id = serializers.CharField()
    currency = serializers.CharField()
    left = serializers.CharField()
    held = serializers.CharField(help_text="Reserved for running answers.")
    spent = serializers.CharField()


class OnwardBudgetView(PaymentView):
    """The caller's budget for paying a remote agent on other servers."""

    read_scope = "payments:read"
    write_scope = "payments:write"

    @extend_schema(
        operation_id="get_onward_budget", responses={200: OnwardBudgetSerializer, **refusals(400)}
    )
    def get(self, request: Request, agent: str) -> Response:
        """Return the budget and its use; nothing is left if the caller has set none."""
        agent_id = agent_id_of(request, agent)
        return Response(_body(agent_id, budget_of(agent_id, caller(request).pk)))

    @extend_schema(
        operation_id="set_onward_budget",
        request=NewOnwardBudgetSerializer,
        responses={200: OnwardBudgetSerializer, **refusals(400, 403)},
    )
    def put(self, request: Request, agent: str) -> Response:
        """Set the amount that the agent may be paid from now on; "0" stops payments."""
        amount = money(checked(request, NewOnwardBudgetSerializer))
        agent_id = agent_id_of(request, agent)
        try:
            budget = set_budget(agent_id, caller(request), amount)
        except NotTheOwner as error:
            text = "Only the owner of a remote agent has a budget for it."
            raise PermissionDenied(text) from error
        except NotRemote as error:
            raise ValidationError({"agent": "This is not a remote agent."}) from error
        return Response(_body(agent_id, budget))


def _body(agent_id: str, budget: OnwardBudget) -> dict[str, str]:
    return {
        "agent": name_of(agent_id),
        "agent_id": agent_id,
        "currency": budget.left.asset,
        "left": str(budget.left),
        "held": str(budget.held),
        "spent": str(budget.spent),
    }
