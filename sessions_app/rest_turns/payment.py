"""REST: paying for an answer that waits for its payer, as `payment.submit` on a socket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from asgiref.sync import async_to_sync
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response as Answer

from agents_app.rest.problem_kinds import PROBLEMS
from agents_app.rest.problems import Problem, responses
from agents_app.rest.strict import StrictSerializer
from agents_app.rest.views import caller
from chat_app.rest.edge import RestView, visible_chats
from payments_app.money import Money
from sessions_app.models import PaymentRequest
from sessions_app.rest_turns.requests import open_exchange, principal_of, session_in
from sessions_app.selectors import delegated_responses
from sessions_app.states import PaymentState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rest_framework.request import Request

TOKEN_CHARS: Final = 16_384
_TOKEN_CODES: Final = ("token_invalid", "token_expired")


class NewPaymentSerializer(StrictSerializer):
    """The body of POST /api/v1/responses/{id}/payment: empty to pay from the caller's balance."""

    token = serializers.CharField(
        max_length=TOKEN_CHARS, required=False, help_text="A payment token that pays instead."
    )


class PaidSerializer(serializers.Serializer[Any]):
    """A payment that an answer waited for; `amount` is reserved, and what is not used released."""

    response_id = serializers.CharField()
    amount = serializers.CharField(help_text="A decimal string.")
    currency = serializers.CharField()


class AnswerPaymentView(RestView):
    """The payment for an answer that waits for it."""

    write_scope = "payments:write"
    takes_restricted_keys = True
    pays_for_answers = True

    @extend_schema(
        operation_id="pay_response",
        request=NewPaymentSerializer,
        responses={200: PaidSerializer, **responses(400, 402, 403, 404, 409, 413, 415, 429, 503)},
    )
    def post(self, request: Request, response_id: str) -> Answer:
        """Pay for a waiting answer, as the person who is asked to; the answer then continues.

        If work that it delegated waits, that is paid, and `response_id` names it. Status 400,
        `payment_not_due`, if it does not wait for a payment of the caller.
        """
        body = NewPaymentSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        row = _request_of(request, response_id)
        token = body.validated_data.get("token")
        payment = {"scheme": "token", "token": token} if token else {"scheme": "balance"}
        event = {"type": "payment.submit", "response_id": row.response_id, "payment": payment}
        refused = async_to_sync(_submitted)(request, row.asked_in, event)
        row.refresh_from_db()
        if refused is not None and row.status != PaymentState.PAID:
            raise _problem_of(refused)
        amount = Money(row.amount, row.asset)
        return Answer(
            {"response_id": row.response_id, "amount": str(amount), "currency": amount.asset}
        )


def _request_of(request: Request, response_id: str) -> PaymentRequest:
    """Return the payment request that a response waits for, itself or for delegated work.

    If nothing waits, that is its own last request; raises Http404 if it has none.
    """
    work = [row.pk for row in delegated_responses([response_id]).get(response_id, [])]
    requests = PaymentRequest.objects.filter(asked_in__in=visible_chats(request).values("pk"))
    latest = requests.filter(response_id=response_id).order_by("-number").first()
    if latest is not None and latest.status == PaymentState.WAITING:
        return latest
    below = requests.filter(
        response_id__in=work, status=PaymentState.WAITING, payer=caller(request).pk
    )
    row: PaymentRequest | None = below.order_by("pk").first() or latest
    if row is None:
        raise Http404
    return row


async def _submitted(
    request: Request, chat_id: str, event: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Send a payment in the caller's session of a chat; return the `payment.error`, if any."""
    exchange, _ = await open_exchange(
        request, principal_of(request), session_in(chat_id), [event], None, receives=False
    )
    frames = exchange.connection.outgoing.take_replies()
    await exchange.close()
    replies: Sequence[dict[str, Any]] = [msgspec.json.decode(frame.text) for frame in frames]
    return next((reply for reply in replies if reply["type"] == "payment.error"), None)


def _problem_of(refused: Mapping[str, Any]) -> Problem:
    code = refused["code"]
    if code in _TOKEN_CODES:
        code = f"payment_{code}"
    elif code not in PROBLEMS:
        code = "payment_failed"
    names = ("balance_required", "balance_current")
    amounts = {name: refused[name] for name in names if refused.get(name)}
    payment = {"payment": {"code": refused["code"], **amounts}}
    return Problem(code, refused["message"], members=payment)
