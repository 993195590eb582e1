"""REST: what the caller paid, by day, agent, protocol, person and more (docs/rest.md)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, cast

from django.contrib.auth.models import User
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from agents_app.rest.views import caller
from payments_app.reporting.usage import ROWS_MAX, usage_of_person
from payments_app.rest.accounts import DAYS_MAX, CurrencyQuery, name_of
from payments_app.rest.edge import PaymentView, queried, refusals

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rest_framework.request import Request

    from payments_app.reporting.usage import Used
    from payments_app.selectors import Dimension

DIMENSIONS: Final[tuple[Dimension, ...]] = ("agent", "chat", "protocol", "kind", "day", "person")
_ANY: Final = "|".join(DIMENSIONS)


class GroupedQuery(serializers.Serializer[Any]):
    """The number of days to look back, and the grouping."""

    days = serializers.IntegerField(min_value=1, max_value=DAYS_MAX, default=30)
    by = serializers.RegexField(
        rf"^(?:{_ANY})(?:,(?:{_ANY})){{0,{len(DIMENSIONS) - 1}}}\Z",
        default="agent",
        max_length=60,
        help_text=f"One or several, separated by commas: {', '.join(DIMENSIONS)}.",
        error_messages={"invalid": f"Known are {', '.join(DIMENSIONS)}."},
    )

    def validate_by(self, text: str) -> list[str]:
        """Return the dimensions, each once."""
        return list(dict.fromkeys(text.split(",")))


class UsageQuery(GroupedQuery, CurrencyQuery):
    """The query parameters of GET /api/v1/usage."""


class UsedSerializer(serializers.Serializer[Any]):
    """The spending on one agent, chat, protocol, kind of charge, day or person, or a combination.

    `id` and `name` are those of the first dimension in `by`.
    """

    id = serializers.CharField(
        help_text="Of the agent, chat or person; the protocol, kind or day itself."
        " Empty where it is not known, as for visitors."
    )
    name = serializers.CharField(help_text="The agent's or person's; empty for others.")
    keys = serializers.DictField(
        child=serializers.CharField(), help_text="The id in each dimension of `by`."
    )
    names = serializers.DictField(
        child=serializers.CharField(), help_text="The names of the agent and the person in `keys`."
    )
    amount = serializers.CharField()
    charges = serializers.IntegerField()


class UsageSerializer(serializers.Serializer[Any]):
    """Spending, the largest first, or by day in chronological order."""

    object = serializers.CharField(default="list")
    currency = serializers.CharField()
    by = serializers.CharField(help_text="As in the request.")
    since = serializers.DateTimeField()
    has_more = serializers.BooleanField(
        help_text=f"Whether there are more than the {ROWS_MAX} rows shown: ask for fewer days."
    )

    def get_fields(self) -> dict[str, Any]:
        """Add `data`, which as an attribute would hide the serializer's own."""
        return {**super().get_fields(), "data": UsedSerializer(many=True)}


class UsageView(PaymentView):
    """The caller's usage."""

    read_scope = "payments:read"

    @extend_schema(
        operation_id="get_usage",
        parameters=[UsageQuery],
        responses={200: UsageSerializer, **refusals(400)},
    )
    def get(self, request: Request) -> Response:
        """Return the caller's payments of the last `days` days, grouped, the largest first.

        Grouped by `person`, rows are the people who asked; sponsored people share one unnamed row.
        """
        query = queried(request, UsageQuery)
        since = since_days(query["days"])
        by = cast("list[Dimension]", query["by"])
        rows = usage_of_person(
            caller(request).pk, by, since=since, asset=query["currency"], limit=ROWS_MAX + 1
        )
        return Response(usage_data(rows, by, since=since, currency=query["currency"]))


def since_days(days: int) -> datetime:
    """Return the beginning, in UTC, of the first of the last `days` days."""
    first = datetime.now(UTC).date() - timedelta(days=days - 1)
    return datetime.combine(first, datetime.min.time(), UTC)


def usage_data(
    rows: Sequence[Used], by: Sequence[Dimension], *, since: datetime, currency: str
) -> dict[str, Any]:
    """Return the body of an answer, of which `rows` may have one row too many."""
    visible = rows[:ROWS_MAX]
    names = {
        "agent": _names(by, "agent", visible, agents=True),
        "person": _names(by, "person", visible, agents=False),
    }
    data = []
    for row in visible:
        keys = dict(zip(by, row.ids, strict=True))
        named = {name: names[name].get(keys[name], "") for name in by if name in names}
        data.append(
            {
                "id": row.ids[0],
                "name": named.get(by[0], ""),
                "keys": keys,
                "names": named,
                "amount": str(row.amount),
                "charges": row.charges,
            }
        )
    return {
        "object": "list",
        "currency": currency,
        "by": ",".join(by),
        "since": since,
        "has_more": len(rows) > len(visible),
        "data": data,
    }


def _names(
    by: Sequence[Dimension], dimension: Dimension, rows: Iterable[Used], *, agents: bool
) -> dict[str, str]:
    if dimension not in by:
        return {}
    ids = {row.ids[by.index(dimension)] for row in rows} - {""}
    if agents:
        return {pk: name_of(pk) for pk in ids}
    people = User.objects.filter(pk__in=[int(pk) for pk in ids])
    return {str(pk): name for pk, name in people.values_list("pk", "username")}
