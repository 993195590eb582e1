"""REST: what the answers of a chat cost, and the chat's pool (docs/money.md).

Every member may know what an answer cost; who paid it sees the transfers, and no member
sees the balance of another. A pool is its chat's owners' to look at and to fill.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import Count
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.response import Response as Answer

from agents_app.rest.problems import Problem, responses
from agents_app.rest.views import StrictSerializer, caller
from chat_app.members import membership
from chat_app.rest.edge import RestView, check_member
from chat_app.rest.paging import list_of, list_response, read_query
from chat_app.rest.serializers import NoQuery
from payments_app import selectors as ledger_rows
from payments_app import services as ledger
from payments_app.money import DEFAULT_ASSET, InvalidAmount, Money
from payments_app.reporting import answer_costs
from sessions_app import selectors
from sessions_app.billing import payers
from sessions_app.models import Response

if TYPE_CHECKING:
    from rest_framework.request import Request

ANSWERS_MAX: Final = 100
KEY_CHARS: Final = 200


class ReceiptQuery(serializers.Serializer[Any]):
    """The query parameters of GET /api/v1/chats/{id}/payments."""

    responses = serializers.CharField(
        required=False,
        max_length=41 * ANSWERS_MAX,
        help_text="Ids with commas between, at most 100; without it the newest 100 answers.",
    )

    def validate_responses(self, text: str) -> list[str]:
        """Return the ids."""
        ids = [part for part in text.split(",") if part]
        if len(ids) > ANSWERS_MAX:
            raise ValidationError(f"At most {ANSWERS_MAX} ids.")
        return ids


class PaymentReceiptSerializer(serializers.Serializer[Any]):
    """What one answer cost; `transfers` are there for who paid."""

    response_id = serializers.CharField()
    agent = serializers.CharField()
    amount = serializers.CharField(help_text="What was charged, a decimal string.")
    refunded = serializers.CharField()
    fee = serializers.CharField(help_text="The server's share of it.")
    currency = serializers.CharField()
    input_tokens = serializers.IntegerField(allow_null=True)
    output_tokens = serializers.IntegerField(allow_null=True)
    tools = serializers.IntegerField(help_text="How many calls of tools.")
    paid_by = serializers.CharField(help_text="`you`, `pool`, or `other`: another person")
    unfinished = serializers.CharField(
        allow_null=True,
        help_text="Of an answer that was not completed, how much of the price of an answer was"
        " charged: whole, share or none.",
    )
    paid_at = serializers.DateTimeField()
    transfers = serializers.ListField(child=serializers.CharField())
    delegated = serializers.ListField(
        child=serializers.DictField(),
        help_text="Receipts of what other agents answered for it, which `amount` does not count.",
    )


class PoolSerializer(serializers.Serializer[Any]):
    """What a chat's pool has; `transfer_id` is there when something was just put in."""

    available = serializers.CharField()
    held = serializers.CharField()
    currency = serializers.CharField()
    transfer_id = serializers.CharField(required=False)


class FillSerializer(StrictSerializer):
    """The body of POST /api/v1/chats/{id}/pool."""

    amount = serializers.CharField(max_length=40, help_text="A decimal string.")


class PaymentsView(RestView):
    """What the answers of a chat cost."""

    @extend_schema(
        operation_id="list_chat_payments",
        parameters=[ReceiptQuery],
        responses={200: list_of(PaymentReceiptSerializer), **responses(400, 404)},
    )
    def get(self, request: Request, chat_id: str) -> Answer:
        """Return the receipts of answers that cost something, the newest first."""
        query = read_query(request, ReceiptQuery)
        check_member(request, chat_id)
        rows = Response.objects.filter(chat_id=chat_id).annotate(calls=Count("tool_calls"))
        if "responses" in query:
            rows = rows.filter(pk__in=query["responses"])
        newest = rows.select_related("agent").only("usage", "created_at", "agent__name")
        shown = list(newest.order_by("-created_at")[:ANSWERS_MAX])
        work = selectors.work_for(row.pk for row in shown)
        every = [*shown, *(row for rows in work.values() for row in rows)]
        costs = answer_costs.costs_of(row.pk for row in every)
        user_id = caller(request).pk
        data = []
        for row in shown:
            delegated = [
                _receipt(done, costs[done.pk], user_id)
                for done in work.get(row.pk, ())
                if done.pk in costs
            ]
            if row.pk in costs:
                data.append({**_receipt(row, costs[row.pk], user_id), "delegated": delegated})
            elif delegated:
                data.append({**_of_free(row, delegated[0]), "delegated": delegated})
        return list_response(request, data, next_cursor=None, key="response_id")


def _of_free(row: Any, first: dict[str, Any]) -> dict[str, Any]:
    """Return the receipt of an answer that cost nothing itself, but for what it passed on."""
    nothing = {"amount": "0", "refunded": "0", "fee": "0", "transfers": []}
    return {**first, **_of_work(row), **nothing}


def _receipt(row: Any, cost: answer_costs.AnswerCost, user_id: int) -> dict[str, Any]:
    mine = user_id in cost.payers
    return {
        **_of_work(row),
        "amount": str(cost.charged),
        "refunded": str(cost.refunded),
        "fee": str(cost.fee),
        "currency": cost.charged.asset,
        "paid_by": "pool" if "pool" in cost.kinds else "you" if mine else "other",
        "paid_at": cost.at,
        "transfers": list(cost.transfer_ids) if mine else [],
    }


def _of_work(row: Any) -> dict[str, Any]:
    usage = row.usage or {}
    return {
        "response_id": row.pk,
        "agent": row.agent.name,
        "input_tokens": usage.get("input_tokens"),
        "output_tokens": usage.get("output_tokens"),
        "tools": row.calls,
        "unfinished": (usage.get("cost") or {}).get("unfinished"),
    }


class PoolView(RestView):
    """The money that pays for everybody's answers in a chat."""

    @extend_schema(
        operation_id="get_pool", responses={200: PoolSerializer, **responses(400, 403, 404)}
    )
    def get(self, request: Request, chat_id: str) -> Answer:
        """Return what the pool has."""
        read_query(request, NoQuery)
        return Answer(_pool(_owned(request, chat_id)))

    @extend_schema(
        operation_id="fill_pool",
        request=FillSerializer,
        parameters=[OpenApiParameter("Idempotency-Key", location="header", required=True)],
        responses={200: PoolSerializer, **responses(400, 402, 403, 404, 409, 413, 415)},
    )
    def post(self, request: Request, chat_id: str) -> Answer:
        """Put money of one's own in; the same Idempotency-Key again moves nothing again."""
        user = caller(request)
        pool_id = _owned(request, chat_id)
        body = FillSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        amount = _amount(body.validated_data["amount"])
        key = request.headers.get("Idempotency-Key", "")
        if not 0 < len(key) <= KEY_CHARS:
            raise ValidationError({"Idempotency-Key": "This header is needed, short."})
        try:
            done = ledger.transfer(
                key=key,
                scope=f"pool:user:{user.pk}",
                debit=ledger.account_of_user(user.pk).id,
                credit=pool_id,
                amount=amount,
                kind="pool",
                chat_id=chat_id,
                by=user.pk,
                memo="into the pool of a chat",
            )
        except ledger.InsufficientFunds as error:
            raise Problem(
                "insufficient_balance", f"{amount} are wanted, you have {error.available}. Top up."
            ) from error
        except ledger.IdempotencyConflict as error:
            raise Problem("idempotency_conflict", "The key was used for something else.") from error
        return Answer({**_pool(pool_id), "transfer_id": done.transfer_id})


def _owned(request: Request, chat_id: str) -> int:
    """Return the account of a chat's pool; Http404 for strangers, PermissionDenied for members."""
    check_member(request, chat_id)
    if not membership.is_owner(chat_id, caller(request).pk):
        raise PermissionDenied("Only an owner of the chat sees and fills its pool.")
    return payers.pool_of(chat_id, DEFAULT_ASSET)


def _pool(account_id: int) -> dict[str, str]:
    has = ledger_rows.balance(account_id)
    return {
        "available": str(has.available),
        "held": str(has.held),
        "currency": has.available.asset,
    }


def _amount(text: str) -> Money:
    try:
        amount = Money.parse(text)
    except InvalidAmount as error:
        raise ValidationError({"amount": str(error)}) from error
    if not amount:
        raise ValidationError({"amount": "The amount must be more than nothing."})
    return amount
