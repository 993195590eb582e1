"""REST: topping up (docs/rest.md). A provider's webhook is authenticated by its signature."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from django.http import Http404, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response

from agents_app.rest.views import caller
from payments_app.money import ASSETS, DEFAULT_ASSET, Money
from payments_app.rest.edge import (
    AmountField,
    PaymentProblem,
    PaymentView,
    checked,
    key_of,
    money,
    refusals,
    shape,
)
from payments_app.top_ups import requests as top_ups
from payments_app.top_ups.provider import ForeignHook, ProviderFailed

if TYPE_CHECKING:
    from django.http import HttpRequest
    from rest_framework.request import Request

    from payments_app.models import TopUpRequest

logger = logging.getLogger(__name__)

HOOK_BYTES: Final = 256 * 1024


Provider = shape(
    "TopUpProvider",
    name=serializers.CharField(),
    label=serializers.CharField(),
    currencies=serializers.ListField(child=serializers.CharField()),
)
Providers = shape("TopUpProviders", providers=Provider(many=True))


class NewTopUpSerializer(serializers.Serializer[Any]):
    """The body of POST /api/payments/topups."""

    provider = serializers.CharField(max_length=40)
    amount = AmountField()
    currency = serializers.ChoiceField(choices=sorted(ASSETS), default=DEFAULT_ASSET)
    idempotencyKey = serializers.CharField(  # noqa: N815 the clients' own name
        required=False, default="", allow_blank=True, max_length=200
    )


class TopUpSerializer(serializers.Serializer[Any]):
    """A request for a top-up; `url` is where the person pays."""

    id = serializers.CharField()
    provider = serializers.CharField()
    amount = serializers.CharField()
    currency = serializers.CharField()
    state = serializers.CharField(help_text="open, credited or refused")
    url = serializers.CharField()
    reason = serializers.CharField()
    created_at = serializers.DateTimeField()
    decided_at = serializers.DateTimeField(allow_null=True)


TopUps = shape("TopUps", object=serializers.CharField(), items=TopUpSerializer(many=True))


class ProvidersView(PaymentView):
    """The ways to top up."""

    read_scope = "payments:read"

    @extend_schema(operation_id="list_top_up_providers", responses={200: Providers, **refusals()})
    def get(self, request: Request) -> Response:  # noqa: ARG002 required by the interface
        """Return the providers."""
        providers = top_ups.providers()
        return Response(
            {
                "providers": [
                    {
                        "name": provider.name,
                        "label": provider.label,
                        "currencies": list(provider.currencies),
                    }
                    for provider in providers
                ]
            }
        )


class TopUpsView(PaymentView):
    """The caller's requests."""

    read_scope = "payments:read"
    write_scope = "payments:write"

    @extend_schema(operation_id="list_top_ups", responses={200: TopUps, **refusals()})
    def get(self, request: Request) -> Response:
        """Return the newest 100."""
        rows = top_ups.requests_of(caller(request).pk)
        return Response({"object": "list", "items": [_body(row) for row in rows]})

    @extend_schema(
        operation_id="create_top_up",
        request=NewTopUpSerializer,
        responses={201: TopUpSerializer, **refusals(400, 402, 409)},
    )
    def post(self, request: Request) -> Response:
        """Request a top-up; a key creates one request."""
        values = checked(request, NewTopUpSerializer)
        try:
            row, replayed = top_ups.ask(
                key=key_of(request, values["idempotencyKey"]),
                user_id=caller(request).pk,
                provider=values["provider"],
                amount=money(values),
            )
        except top_ups.UnknownProvider as error:
            raise ValidationError({"provider": str(error)}) from error
        except ProviderFailed as error:
            raise PaymentProblem("payment_failed", str(error)) from error
        headers = {"Idempotent-Replayed": "true"} if replayed else {}
        return Response(_body(row), status=201, headers=headers)


class TopUpView(PaymentView):
    """One request."""

    read_scope = "payments:read"

    @extend_schema(operation_id="get_top_up", responses={200: TopUpSerializer, **refusals(404)})
    def get(self, request: Request, request_id: str) -> Response:
        """Return the request in its current state."""
        try:
            return Response(_body(top_ups.request_of(caller(request).pk, request_id)))
        except top_ups.UnknownRequest as error:
            raise Http404 from error


@csrf_exempt
@require_POST
def hook(request: HttpRequest, provider: str) -> HttpResponse:
    """Process a provider's call; answer 400 to an invalid one, so that it is retried."""
    body = request.read(HOOK_BYTES + 1)
    if len(body) > HOOK_BYTES:
        return HttpResponse(status=413)
    try:
        top_ups.receive_webhook(provider, body, request.headers)
    except top_ups.UnknownProvider as error:
        raise Http404 from error
    except ForeignHook as error:
        logger.warning("a call for %s was refused: %s", provider, error)
        return HttpResponse(status=400)
    return HttpResponse(status=204)


def _body(row: TopUpRequest) -> dict[str, Any]:
    return {
        "id": row.pk,
        "provider": row.provider,
        "amount": str(Money(row.amount, row.asset)),
        "currency": row.asset,
        "state": row.state,
        "url": row.url,
        "reason": row.reason,
        "created_at": row.created_at,
        "decided_at": row.decided_at,
    }
