"""REST: the caller's own ledger entries as a list (docs/rest.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.core import signing
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from agents_app.rest.problems import Problem
from agents_app.rest.views import caller
from payments_app import selectors, services
from payments_app.rest.accounts import CurrencyQuery, StatementRowSerializer
from payments_app.rest.edge import PaymentView, queried, refusals

if TYPE_CHECKING:
    from rest_framework.request import Request

_SALT: Final = "rest.ledger.entries"


class EntriesQuery(CurrencyQuery):
    """A page of entries."""

    limit = serializers.IntegerField(min_value=1, max_value=200, default=50)
    cursor = serializers.CharField(
        required=False,
        max_length=300,
        help_text="The `next_cursor` of the previous page, unchanged.",
    )


class EntriesSerializer(serializers.Serializer[Any]):
    """A page of entries, the newest first."""

    object = serializers.CharField(default="list")
    currency = serializers.CharField()
    has_more = serializers.BooleanField()
    first_id = serializers.CharField(allow_null=True)
    last_id = serializers.CharField(allow_null=True)
    next_cursor = serializers.CharField(allow_null=True)

    def get_fields(self) -> dict[str, Any]:
        """Add `data`, which as an attribute would hide the serializer's own."""
        return {**super().get_fields(), "data": StatementRowSerializer(many=True)}


class EntriesView(PaymentView):
    """The entries of the caller's account."""

    read_scope = "payments:read"

    @extend_schema(
        operation_id="list_ledger_entries",
        parameters=[EntriesQuery],
        responses={200: EntriesSerializer, **refusals(400)},
    )
    def get(self, request: Request) -> Response:
        """Return a page of movements on the caller's account, the newest first."""
        query = queried(request, EntriesQuery)
        account = services.account_of_user(caller(request).pk, query["currency"])
        place = _place(query["cursor"], account.id) if "cursor" in query else None
        rows = selectors.statement(account.id, before=place, limit=query["limit"] + 1)
        page = rows[: query["limit"]]
        cursor = None
        if len(rows) > len(page):
            cursor = signing.dumps([account.id, page[-1].entry_id], salt=_SALT)
        data = [
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
        ]
        return Response(
            {
                "object": "list",
                "currency": query["currency"],
                "data": data,
                "has_more": cursor is not None,
                "first_id": str(data[0]["id"]) if data else None,
                "last_id": str(data[-1]["id"]) if data else None,
                "next_cursor": cursor,
            }
        )


def _place(cursor: str, account_id: int) -> int:
    """Return the entry that a cursor of this account names; raises Problem invalid_cursor."""
    try:
        listed, place = signing.loads(cursor, salt=_SALT)
    except (signing.BadSignature, ValueError):
        listed, place = None, 0
    if listed != account_id:
        raise Problem(
            "invalid_cursor",
            "Send next_cursor unchanged, with the same currency.",
            errors=[{"parameter": "cursor", "detail": "Not a cursor of this list."}],
        )
    return int(place)
