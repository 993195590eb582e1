"""REST: the caller's spending limits, and what agents may charge without asking (docs/rest.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response

from agents_app.rest.strict import StrictSerializer
from agents_app.rest.views import caller
from payments_app.money import ASSETS, DEFAULT_ASSET, Money
from payments_app.rest.accounts import agent_id_of, name_of
from payments_app.rest.edge import AmountField, PaymentView, checked, money, refusals
from payments_app.spending import limits
from payments_app.spending.approvals import Approved, approvals_of, approve, withdraw
from payments_app.spending.limits import Limit, LimitState
from payments_app.spending.periods import PERIODS
from payments_app.tokens import lookup as token_lookup

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rest_framework.request import Request

LIMITS_MAX: Final = 100


class LimitSerializer(serializers.Serializer[Any]):
    """One limit; without an agent or a token it covers everything."""

    period = serializers.ChoiceField(choices=PERIODS)
    agent = serializers.CharField(required=False, default="", allow_blank=True, max_length=150)
    token = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=40, help_text="The id of a token."
    )
    amount = AmountField()
    currency = serializers.ChoiceField(choices=sorted(ASSETS), default=DEFAULT_ASSET)


class LimitsSerializer(StrictSerializer):
    """The body of PUT /api/payments/limits: all of the caller's limits."""

    limits = LimitSerializer(many=True)

    def validate_limits(self, value: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Refuse more than a person can keep track of."""
        if len(value) > LIMITS_MAX:
            raise ValidationError(f"Send at most {LIMITS_MAX} limits.")
        return value


class LimitStateSerializer(LimitSerializer):
    """A limit and how much of it is used in the current period."""

    agent_id = serializers.CharField()
    token_name = serializers.CharField()
    spent = serializers.CharField()
    held = serializers.CharField()
    left = serializers.CharField()
    resets_at = serializers.DateTimeField()


class LimitStatesSerializer(serializers.Serializer[Any]):
    """All of the caller's limits."""

    limits = LimitStateSerializer(many=True)


class NewApprovalSerializer(StrictSerializer):
    """The body of PUT /api/payments/approvals/{agent}."""

    up_to = AmountField()
    currency = serializers.ChoiceField(choices=sorted(ASSETS), default=DEFAULT_ASSET)


class ApprovalSerializer(serializers.Serializer[Any]):
    """The amount that an agent may charge for each answer."""

    agent = serializers.CharField()
    agent_id = serializers.CharField()
    up_to = serializers.CharField()
    currency = serializers.CharField()
    created_at = serializers.DateTimeField()


class ApprovalsSerializer(serializers.Serializer[Any]):
    """All of the caller's approvals."""

    approvals = ApprovalSerializer(many=True)


class LimitsView(PaymentView):
    """The caller's spending limits."""

    read_scope = "payments:read"
    write_scope = "payments:write"

    @extend_schema(
        operation_id="get_spending_limits", responses={200: LimitStatesSerializer, **refusals()}
    )
    def get(self, request: Request) -> Response:
        """Return the limits and how much of each is used."""
        return _limits(request)

    @extend_schema(
        operation_id="set_spending_limits",
        request=LimitsSerializer,
        responses={200: LimitStatesSerializer, **refusals(400)},
    )
    def put(self, request: Request) -> Response:
        """Replace all existing limits with these."""
        bodies = checked(request, LimitsSerializer)["limits"]
        user_id = caller(request).pk
        mine = token_lookup.assets_of(user_id, {body["token"] for body in bodies if body["token"]})
        new_limits = [_limit_from(request, body, mine) for body in bodies]
        names = {
            (limit.period, limit.token_id or (limit.agent_id, limit.amount.asset))
            for limit in new_limits
        }
        if len(names) < len(new_limits):
            raise ValidationError(
                {"limits": "Send only one limit for each period, agent, token and currency."}
            )
        limits.set_limits(user_id, new_limits)
        return _limits(request)


def _limit_from(request: Request, body: dict[str, Any], mine: Mapping[str, str]) -> Limit:
    """Return a requested limit; `mine` maps ids of the caller's tokens to their assets."""
    amount, token_id = money(body), body["token"]
    if token_id and body["agent"]:
        raise ValidationError({"limits": "A limit applies to an agent or to a token."})
    if token_id and mine.get(token_id) != amount.asset:
        raise ValidationError({"limits": f"You have no token {token_id} in {amount.asset}."})
    return Limit(
        period=body["period"],
        agent_id=agent_id_of(request, body["agent"]) if body["agent"] else "",
        amount=amount,
        token_id=token_id,
    )


class ApprovalsView(PaymentView):
    """The amounts that agents may charge the caller without asking."""

    read_scope = "payments:read"

    @extend_schema(
        operation_id="list_approvals", responses={200: ApprovalsSerializer, **refusals()}
    )
    def get(self, request: Request) -> Response:
        """Return all of them."""
        approvals = approvals_of(caller(request).pk)
        return Response({"approvals": [_approval(approval) for approval in approvals]})


class ApprovalView(PaymentView):
    """The amount that one agent may charge for each answer."""

    write_scope = "payments:write"

    @extend_schema(
        operation_id="approve_agent",
        request=NewApprovalSerializer,
        responses={200: ApprovalSerializer, **refusals(400)},
    )
    def put(self, request: Request, agent: str) -> Response:
        """Let an agent charge up to `up_to` for each answer."""
        up_to = money(checked(request, NewApprovalSerializer), "up_to")
        user_id, agent_id = caller(request).pk, agent_id_of(request, agent)
        approve(user_id, agent_id, up_to)
        approvals = approvals_of(user_id)
        return Response(
            _approval(next(approval for approval in approvals if approval.agent_id == agent_id))
        )

    @extend_schema(operation_id="withdraw_approval", responses={204: None, **refusals(404)})
    def delete(self, request: Request, agent: str) -> Response:
        """Withdraw the approval; the agent may also be named by its id."""
        user_id = caller(request).pk
        for approval in approvals_of(user_id):
            if agent in {approval.agent_id, name_of(approval.agent_id)}:
                withdraw(user_id, approval.agent_id)
                return Response(status=204)
        raise Http404


def _limits(request: Request) -> Response:
    states = limits.limits_of(caller(request).pk)
    names = token_lookup.names_of(
        {state.limit.token_id for state in states if state.limit.token_id}
    )
    return Response({"limits": [_limit(state, names) for state in states]})


def _limit(state: LimitState, names: Mapping[str, str]) -> dict[str, Any]:
    asset = state.limit.amount.asset
    remaining = max(state.limit.amount - state.spent - state.held, Money.zero(asset))
    return {
        "period": state.limit.period,
        "agent": name_of(state.limit.agent_id),
        "agent_id": state.limit.agent_id,
        "token": state.limit.token_id,
        "token_name": names.get(state.limit.token_id, ""),
        "amount": str(state.limit.amount),
        "currency": asset,
        "spent": str(state.spent),
        "held": str(state.held),
        "left": str(remaining),
        "resets_at": state.resets_at,
    }


def _approval(approval: Approved) -> dict[str, Any]:
    return {
        "agent": name_of(approval.agent_id),
        "agent_id": approval.agent_id,
        "up_to": str(approval.up_to),
        "currency": approval.up_to.asset,
        "created_at": approval.created_at,
    }
