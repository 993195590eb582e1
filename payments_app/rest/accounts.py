"""REST: the caller's balance, movements and spending (docs/rest.md).

No path names an account: every route concerns the caller's own.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response

from agents_app import selectors as agents
from agents_app.rest.views import caller
from payments_app import selectors, services
from payments_app.money import ASSETS, DEFAULT_ASSET, Money
from payments_app.rest.edge import PaymentView, queried, refusals, shape

if TYPE_CHECKING:
    from rest_framework.request import Request

DAYS_MAX: Final = 366
ID_MAX: Final = 2**63 - 1


class CurrencyQuery(serializers.Serializer[Any]):
    """Selects one of the caller's accounts."""

    currency = serializers.ChoiceField(choices=sorted(ASSETS), default=DEFAULT_ASSET)


class StatementQuery(CurrencyQuery):
    """A page of a statement."""

    limit = serializers.IntegerField(min_value=1, max_value=200, default=50)
    cursor = serializers.IntegerField(min_value=1, max_value=ID_MAX, required=False)


class SpendQuery(CurrencyQuery):
    """The number of days to look back."""

    days = serializers.IntegerField(min_value=1, max_value=DAYS_MAX, default=30)


Balance = shape(
    "PaymentBalance",
    available=serializers.CharField(),
    held=serializers.CharField(),
    posted=serializers.CharField(),
    balance=serializers.CharField(help_text="The same as available."),
    balanceDollars=serializers.CharField(),
    currency=serializers.CharField(),
)


class StatementRowSerializer(serializers.Serializer[Any]):
    """One movement of the caller's account; outgoing amounts are negative."""

    id = serializers.IntegerField()
    transfer_id = serializers.CharField()
    at = serializers.DateTimeField()
    kind = serializers.CharField()
    amount = serializers.CharField()
    memo = serializers.CharField()
    response_id = serializers.CharField()
    chat_id = serializers.CharField()
    agent_id = serializers.CharField()
    protocol = serializers.CharField()
    reverses_id = serializers.CharField(allow_null=True)


class StatementSerializer(serializers.Serializer[Any]):
    """A page of a statement, newest first; `next_cursor` is the start of the next one."""

    object = serializers.CharField(default="list")
    currency = serializers.CharField()
    has_more = serializers.BooleanField()
    next_cursor = serializers.IntegerField(allow_null=True)

    def get_fields(self) -> dict[str, Any]:
        """Add `data`, which as an attribute would hide the serializer's own."""
        return {**super().get_fields(), "data": StatementRowSerializer(many=True)}


class DaySerializer(serializers.Serializer[Any]):
    """The spending of one day, in UTC."""

    day = serializers.DateField()
    amount = serializers.CharField()


class AgentSpendSerializer(serializers.Serializer[Any]):
    """The spending on one agent."""

    agent_id = serializers.CharField()
    agent = serializers.CharField(help_text="Its name; empty if it no longer exists.")
    amount = serializers.CharField()
    charges = serializers.IntegerField()


class SpendSerializer(serializers.Serializer[Any]):
    """The caller's spending, including their tokens'; every day of the period is listed."""

    currency = serializers.CharField()
    total = serializers.CharField()
    days = DaySerializer(many=True)
    agents = AgentSpendSerializer(many=True)


class BalanceView(PaymentView):
    """The caller's balance."""

    read_scope = "payments:read"

    @extend_schema(
        operation_id="get_balance",
        parameters=[CurrencyQuery],
        responses={200: Balance, **refusals(400)},
    )
    def get(self, request: Request) -> Response:
        """Return the available, held and posted amounts."""
        currency = queried(request, CurrencyQuery, strict=False)["currency"]
        account = services.account_of_user(caller(request).pk, currency)
        balance = selectors.balance(account.id)
        return Response(
            {
                "available": str(balance.available),
                "held": str(balance.held),
                "posted": str(balance.posted),
                "balance": str(balance.available),
                "balanceDollars": str(balance.available),
                "currency": currency,
            }
        )


class ShortBalanceView(BalanceView):
    """The same at /api/balance, where the network's clients look for it."""

    schema = None


class StatementView(PaymentView):
    """Movements on the caller's account."""

    read_scope = "payments:read"

    @extend_schema(
        operation_id="get_statement",
        parameters=[StatementQuery],
        responses={200: StatementSerializer, **refusals(400)},
    )
    def get(self, request: Request) -> Response:
        """Return a page of movements, the newest first."""
        query = queried(request, StatementQuery)
        account = services.account_of_user(caller(request).pk, query["currency"])
        rows = selectors.statement(account.id, before=query.get("cursor"), limit=query["limit"] + 1)
        page = rows[: query["limit"]]
        more = len(rows) > len(page)
        return Response(
            {
                "object": "list",
                "currency": query["currency"],
                "data": [
                    {
                        "id": row.entry_id,
                        "transfer_id": row.transfer_id,
                        "at": row.at,
                        "kind": row.kind,
                        "amount": str(row.amount),
                        "memo": row.memo,
                        "response_id": row.response_id,
                        "chat_id": row.chat_id,
                        "agent_id": row.agent_id,
                        "protocol": row.protocol,
                        "reverses_id": row.reverses_id,
                    }
                    for row in page
                ],
                "has_more": more,
                "next_cursor": page[-1].entry_id if more else None,
            }
        )


class SpendView(PaymentView):
    """The caller's spending by day and by agent."""

    read_scope = "payments:read"

    @extend_schema(
        operation_id="get_spend",
        parameters=[SpendQuery],
        responses={200: SpendSerializer, **refusals(400)},
    )
    def get(self, request: Request) -> Response:
        """Return the last `days` days, today included."""
        query = queried(request, SpendQuery)
        user_id, currency = caller(request).pk, query["currency"]
        today = datetime.now(UTC).date()
        first = today - timedelta(days=query["days"] - 1)
        since = datetime.combine(first, datetime.min.time(), UTC)
        by_day = dict(selectors.user_spend_by_day(user_id, currency, since))
        by_agent = selectors.usage_by("agent", since=since, user_id=user_id, asset=currency)
        nothing = Money.zero(currency)
        days = [first + timedelta(days=number) for number in range(query["days"])]
        return Response(
            {
                "currency": currency,
                "total": str(Money.capped(sum(day.amount for day in by_day.values()), currency)),
                "days": [{"day": day, "amount": str(by_day.get(day, nothing))} for day in days],
                "agents": [
                    {
                        "agent_id": spent.name,
                        "agent": name_of(spent.name),
                        "amount": str(spent.amount),
                        "charges": spent.charges,
                    }
                    for spent in by_agent
                ],
            }
        )


def name_of(agent_id: str) -> str:
    """Return the current name of an agent by id; "" if it no longer exists."""
    try:
        return agents.get_spec(agent_id).name if agent_id else ""
    except agents.AgentNotFoundError:
        return ""


def agent_id_of(request: Request, named: str) -> str:
    """Return the id of an agent that the caller may use, by name or id; raises ValidationError."""
    for spec in agents.list_agents(caller(request)):
        if named == spec.id or named.casefold() == spec.name.casefold():
            return spec.id
    raise ValidationError({"agent": "There is no such agent."})
