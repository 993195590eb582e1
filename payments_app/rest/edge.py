"""The base of the payment views: exact numbers in, problems with `payment` out.

A number in a body is read as the digits it was written with, never as a float. Every refusal of the
ledger, a token or a limit has one problem, whichever route it comes from.
"""

from __future__ import annotations

import json
import uuid
from typing import IO, TYPE_CHECKING, Any, Final

from django.http import Http404
from django.utils.decorators import method_decorator
from django.views.decorators.cache import cache_control
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.parsers import BaseParser

from agents_app.rest.problems import Problem
from agents_app.rest.views import JsonView, json_object
from payments_app.ledger.outcomes import LimitReached
from payments_app.money import DEFAULT_ASSET, AssetMismatch, InvalidAmount, Money
from payments_app.services import (
    BalanceOutOfRange,
    HoldNotActive,
    IdempotencyConflict,
    InsufficientFunds,
    LedgerFrozen,
    OverCapture,
    UnknownAccount,
    UnknownHold,
)
from payments_app.tokens.issuance import ImpossibleToken
from payments_app.tokens.lookup import TokenRefused, UnknownToken

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rest_framework.request import Request
    from rest_framework.response import Response

BODY_BYTES: Final = 64 * 1024
KEY_CHARS: Final = 200
PROBLEM: Final = {"$ref": "#/components/schemas/Problem"}


class Digits(str):
    """A number in a JSON text, as written."""

    __slots__ = ()


class PaymentProblem(Problem):
    """A refusal whose `payment` member names the code and the amounts for the payer."""

    def __init__(
        self, code: str, detail: str, *, status: int = 402, payment: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(
            code, detail, status=status, members={"payment": dict(payment)} if payment else {}
        )


class ExactJSONParser(BaseParser):
    """Strict JSON of at most 64 KiB, whose numbers keep their digits."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,  # noqa: ARG002 required by the interface
        parser_context: Mapping[str, Any] | None = None,  # noqa: ARG002 required by the interface
    ) -> dict[str, Any]:
        """Return the object; raises ParseError."""
        body = stream.read(BODY_BYTES + 1)
        json_object(body, bytes_max=BODY_BYTES)
        exact: dict[str, Any] = json.loads(body, parse_float=Digits)
        return exact


@method_decorator(cache_control(private=True, no_store=True), name="dispatch")
class PaymentView(JsonView):
    """A REST view of payments, whose responses must not be cached."""

    parser_classes: Sequence[type[BaseParser]] = (ExactJSONParser,)

    def handle_exception(self, exc: Exception) -> Response:
        """Answer a refusal of the ledger, a token or a limit with its problem."""
        return super().handle_exception(problem_of(exc))


def problem_of(error: Exception) -> Exception:
    """Convert a refusal to its REST problem; return other errors unchanged."""
    answer = error
    match error:
        case InsufficientFunds(available=available, requested=requested):
            payment: dict[str, Any] = {
                "code": "insufficient_balance",
                "balance_current": str(available),
                "balance_required": str(requested),
                "currency": requested.asset,
            }
            answer = PaymentProblem("insufficient_balance", str(error), payment=payment)
        case OverCapture(left=left):
            payment = {
                "code": "insufficient_balance",
                "balance_current": str(left),
                "currency": left.asset,
            }
            answer = PaymentProblem("insufficient_balance", str(error), payment=payment)
        case TokenRefused(code=code):
            kind = "expired" if code == "token_expired" else "invalid"
            answer = PaymentProblem(f"payment_token_{kind}", str(error), payment={"code": code})
        case LimitReached(period=period, left=left, resets_at=resets_at):
            payment = {
                "code": "rate_limited",
                "period": period,
                "left": str(left),
                "currency": left.asset,
                "resets_at": resets_at.isoformat() if resets_at else None,
            }
            answer = PaymentProblem("spending_limit", str(error), payment=payment)
        case HoldNotActive():
            answer = PaymentProblem("hold_ended", str(error), status=409)
        case IdempotencyConflict():
            answer = PaymentProblem("idempotency_conflict", str(error), status=409)
        case LedgerFrozen():
            answer = PaymentProblem("payment_failed", "Payouts are suspended at the moment.")
        case InvalidAmount() | AssetMismatch() | ImpossibleToken() | BalanceOutOfRange():
            answer = ValidationError(str(error))
        case UnknownToken() | UnknownHold() | UnknownAccount():
            answer = Http404()
    return answer


def key_of(request: Request, body_key: str = "") -> str:
    """Return the idempotency key of a request, from its header or body, or a new one.

    A header and a body that disagree are refused.
    """
    header = request.headers.get("Idempotency-Key", "")
    key = header or body_key
    if header and body_key and header != body_key:
        raise ValidationError({"idempotencyKey": "The Idempotency-Key header has a different key."})
    if len(key) > KEY_CHARS:
        raise ValidationError({"idempotencyKey": f"A key may have at most {KEY_CHARS} characters."})
    return key or uuid.uuid4().hex


def checked(request: Request, body: type[serializers.Serializer[Any]]) -> dict[str, Any]:
    """Return the validated body of a request; raises ValidationError."""
    serializer = body(data=request.data)
    serializer.is_valid(raise_exception=True)
    values: dict[str, Any] = serializer.validated_data
    return values


def queried(
    request: Request, query: type[serializers.Serializer[Any]], *, strict: bool = True
) -> dict[str, Any]:
    """Return the validated query parameters of a request; raises ValidationError.

    Raises Problem unknown_parameter for other names, unless not `strict`: clients of other servers
    may send some where they read a balance.
    """
    serializer = query(data=request.query_params)
    if strict and (unknown := sorted(set(request.query_params) - set(serializer.fields))):
        raise Problem(
            "unknown_parameter",
            f"Supported parameters: {', '.join(serializer.fields)}.",
            errors=[{"parameter": name, "detail": "Unknown."} for name in unknown],
        )
    serializer.is_valid(raise_exception=True)
    values: dict[str, Any] = serializer.validated_data
    return values


def refusals(*statuses: int) -> dict[Any, Any]:
    """Return the OpenAPI entries of refusals, always including 401."""
    return {(code, "application/problem+json"): PROBLEM for code in (401, *statuses)}


@extend_schema_field(
    {"oneOf": [{"type": "string"}, {"type": "number"}], "description": "A decimal string."}
)
class AmountField(serializers.Field[Any, Any, str, Any]):
    """An amount as a decimal string; a JSON number is accepted with the digits as written."""

    def to_internal_value(self, data: Any) -> str:
        """Return the digits; their value depends on the currency."""
        if isinstance(data, str | int):
            return str(data)
        raise serializers.ValidationError("An amount must be a decimal string.")

    def to_representation(self, value: Any) -> str:
        """Return the decimal string."""
        return str(value)


def money(values: Mapping[str, Any], name: str = "amount") -> Money:
    """Return an amount of a validated body in its `currency`; raises ValidationError."""
    try:
        return Money.parse(values[name], values.get("currency") or DEFAULT_ASSET)
    except InvalidAmount as error:
        raise ValidationError({name: str(error)}) from error


def shape(name: str, /, **members: Any) -> type[serializers.Serializer[Any]]:
    """Return a serializer whose members have the clients' names rather than Python's."""
    made: type[serializers.Serializer[Any]] = type(name, (serializers.Serializer,), members)
    return made
