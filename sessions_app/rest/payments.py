"""REST: the costs of a chat's answers, and the chat's pool (docs/money.md).

Every member may see the cost of an answer. Only the payer sees the transfers, and members never see
each other's balance. Only owners of a chat may see and fill its pool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.response import Response as Answer

from agents_app.rest.problems import Problem, responses
from agents_app.rest.strict import StrictSerializer
from agents_app.rest.views import caller
from chat_app.members import membership
from chat_app.rest.edge import RestView, check_member
from chat_app.rest.paging import list_of, list_response, read_query
from chat_app.rest.serializers import NoQuery
from payments_app import selectors as ledger_rows
from payments_app import services as ledger
from payments_app.money import DEFAULT_ASSET, InvalidAmount, Money
from payments_app.reporting.usage import ROWS_MAX, usage_of_account
from payments_app.rest.usage import GroupedQuery, UsageSerializer, since_days, usage_data
from sessions_app.billing import payers
from sessions_app.rest.chats import receipts

if TYPE_CHECKING:
    from rest_framework.request import Request

KEY_CHARS: Final = 200


class ReceiptQuery(serializers.Serializer[Any]):
    """The query parameters of GET /api/v1/chats/{id}/payments."""

    responses = serializers.CharField(
        required=False,
        max_length=41 * receipts.ANSWERS_MAX,
        help_text="Ids separated by commas, at most 100; by default the newest 100 answers.",
    )

    def validate_responses(self, text: str) -> list[str]:
        """Return the ids."""
        ids = [part for part in text.split(",") if part]
        if len(ids) > receipts.ANSWERS_MAX:
            raise ValidationError(f"At most {receipts.ANSWERS_MAX} ids.")
        return ids


class PaymentReceiptSerializer(serializers.Serializer[Any]):
    """The cost of one answer; `transfers` is empty except for the payer."""

    response_id = serializers.CharField()
    agent = serializers.CharField()
    amount = serializers.CharField(help_text="What was charged, a decimal string.")
    refunded = serializers.CharField()
    fee = serializers.CharField(help_text="The server's share of it.")
    currency = serializers.CharField()
    input_tokens = serializers.IntegerField(allow_null=True)
    output_tokens = serializers.IntegerField(allow_null=True)
    tools = serializers.IntegerField(help_text="The number of tool calls.")
    paid_by = serializers.CharField(help_text="`you`, `pool`, or `other`: another person")
    unfinished = serializers.CharField(
        allow_null=True,
        help_text="For an incomplete answer, how much of its price was charged: whole, share or"
        " none.",
    )
    paid_onward = serializers.CharField(
        allow_null=True,
        help_text="What a remote agent was paid for it on another server, by its owner.",
    )
    paid_at = serializers.DateTimeField()
    transfers = serializers.ListField(child=serializers.CharField())
    document = serializers.CharField(
        help_text="The receipt as a JWS that binds it to the message of the answer"
        " (docs/signatures.md)."
    )
    delegated = serializers.ListField(
        child=serializers.DictField(),
        help_text="Receipts for delegated answers, which `amount` does not include.",
    )


class PoolSerializer(serializers.Serializer[Any]):
    """The balance of a chat's pool; `transfer_id` is set after a deposit."""

    available = serializers.CharField()
    held = serializers.CharField()
    currency = serializers.CharField()
    transfer_id = serializers.CharField(required=False)


class FillSerializer(StrictSerializer):
    """The body of POST /api/v1/chats/{id}/pool."""

    amount = serializers.CharField(max_length=40, help_text="A decimal string.")


class PaymentsView(RestView):
    """The costs of a chat's answers."""

    read_scope = "payments:read"

    @extend_schema(
        operation_id="list_chat_payments",
        parameters=[ReceiptQuery],
        responses={200: list_of(PaymentReceiptSerializer), **responses(400, 404)},
    )
    def get(self, request: Request, chat_id: str) -> Answer:
        """Return the receipts of answers that cost something, newest first."""
        query = read_query(request, ReceiptQuery)
        check_member(request, chat_id)
        data = receipts.receipts_of(
            chat_id, caller(request).pk, response_ids=query.get("responses")
        )
        return list_response(request, data, next_cursor=None, key="response_id")


class PoolView(RestView):
    """The money that pays for everyone's answers in a chat."""

    answers_repeats = True
    read_scope = "payments:read"
    write_scope = "payments:write"

    @extend_schema(
        operation_id="get_pool", responses={200: PoolSerializer, **responses(400, 403, 404)}
    )
    def get(self, request: Request, chat_id: str) -> Answer:
        """Return the pool's balance."""
        read_query(request, NoQuery)
        return Answer(_pool(_owned(request, chat_id)))

    @extend_schema(
        operation_id="fill_pool",
        request=FillSerializer,
        parameters=[OpenApiParameter("Idempotency-Key", location="header", required=True)],
        responses={200: PoolSerializer, **responses(400, 402, 403, 404, 409, 413, 415)},
    )
    def post(self, request: Request, chat_id: str) -> Answer:
        """Deposit the caller's money; repeating the Idempotency-Key does not repeat the deposit."""
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
                "insufficient_balance",
                f"This costs {amount}, and the balance is {error.available}. Top up.",
            ) from error
        except ledger.IdempotencyConflict as error:
            raise Problem("idempotency_conflict", "The key was used for something else.") from error
        return Answer({**_pool(pool_id), "transfer_id": done.transfer_id})


class PoolUsageView(RestView):
    """The payments of a chat's pool, grouped."""

    read_scope = "payments:read"

    @extend_schema(
        operation_id="get_pool_usage",
        parameters=[GroupedQuery],
        responses={200: UsageSerializer, **responses(400, 403, 404)},
    )
    def get(self, request: Request, chat_id: str) -> Answer:
        """Return the pool's payments of the last `days` days, grouped as `GET /usage`."""
        query = read_query(request, GroupedQuery)
        pool_id = _owned(request, chat_id)
        since = since_days(query["days"])
        rows = usage_of_account(
            pool_id, query["by"], since=since, asset=DEFAULT_ASSET, limit=ROWS_MAX + 1
        )
        return Answer(usage_data(rows, query["by"], since=since, currency=DEFAULT_ASSET))


def _owned(request: Request, chat_id: str) -> int:
    """Return a pool's account; raises Http404 for strangers, PermissionDenied for non-owners."""
    check_member(request, chat_id)
    if not membership.is_owner(chat_id, caller(request).pk):
        raise PermissionDenied("Only an owner of the chat may see and fill its pool.")
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
        raise ValidationError({"amount": "The amount must be positive."})
    return amount
