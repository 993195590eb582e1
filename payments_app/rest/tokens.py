"""REST: the caller's payment tokens (webagents §5.2, docs/rest.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response

from agents_app.rest.views import caller
from payments_app.money import ASSETS, DEFAULT_ASSET
from payments_app.rest.edge import (
    AmountField,
    PaymentView,
    checked,
    key_of,
    money,
    refusals,
    shape,
)
from payments_app.spending.periods import PERIODS
from payments_app.tokens import endings, issuance, top_ups

if TYPE_CHECKING:
    from rest_framework.request import Request

    from payments_app.tokens.endings import TokenState

FORMS: Final = ("opaque", "jwt")

Limits = shape(
    "NewPaymentTokenLimit",
    period=serializers.ChoiceField(choices=PERIODS),
    amount=AmountField(),
)
NewToken = shape(
    "NewPaymentToken",
    amount=AmountField(),
    currency=serializers.ChoiceField(choices=sorted(ASSETS), default=DEFAULT_ASSET),
    name=serializers.CharField(required=False, default="", allow_blank=True, max_length=100),
    audience=serializers.ListField(
        child=serializers.CharField(max_length=issuance.AGENT_CHARS),
        max_length=issuance.MAX_AUDIENCE,
        required=False,
        default=list,
        help_text="Names of the agents that it may pay; all if empty.",
    ),
    perUseLimit=AmountField(required=False),
    limits=Limits(many=True, required=False, default=list),
    expiresIn=serializers.IntegerField(
        min_value=1,
        max_value=int(issuance.MAX_SECONDS),
        default=30 * 86_400,
        help_text="Seconds.",
    ),
    form=serializers.ChoiceField(choices=FORMS, default="opaque"),
    idempotencyKey=serializers.CharField(
        required=False, default="", allow_blank=True, max_length=200
    ),
)
TopUp = shape(
    "PaymentTokenTopUp",
    amount=AmountField(),
    currency=serializers.ChoiceField(choices=sorted(ASSETS), default=DEFAULT_ASSET),
    idempotencyKey=serializers.CharField(
        required=False, default="", allow_blank=True, max_length=200
    ),
)
_STATE: Final[dict[str, Any]] = {
    "id": serializers.CharField(),
    "name": serializers.CharField(),
    "form": serializers.CharField(help_text="opaque, jwt or x402"),
    "status": serializers.CharField(help_text="active, expired or revoked"),
    "parentId": serializers.CharField(allow_null=True),
    "depth": serializers.IntegerField(),
    "audience": serializers.ListField(child=serializers.CharField()),
    "balance": serializers.CharField(),
    "balanceDollars": serializers.CharField(),
    "held": serializers.CharField(),
    "currency": serializers.CharField(),
    "perUseLimit": serializers.CharField(allow_null=True),
    "expiresAt": serializers.DateTimeField(allow_null=True),
    "createdAt": serializers.DateTimeField(),
}
State = shape("PaymentToken", **_STATE)
Issued = shape(
    "IssuedPaymentToken",
    **_STATE,
    token=serializers.CharField(
        help_text="The secret. Only the same request under the same idempotency key gets it again."
    ),
    replayed=serializers.BooleanField(),
)
ToppedUp = shape(
    "ToppedUpPaymentToken",
    **_STATE,
    jti=serializers.CharField(),
    token=serializers.CharField(required=False, help_text="A newly signed JWT."),
    replayed=serializers.BooleanField(),
)
Revoked = shape(
    "RevokedPaymentToken", **_STATE, returned=serializers.CharField(help_text="Amount returned.")
)
States = shape("PaymentTokens", object=serializers.CharField(), items=State(many=True))


@extend_schema_field({"type": "array", "items": {"$ref": "#/components/schemas/PaymentTokenTree"}})
class _Children(serializers.ListField):
    """The delegated tokens, each with its own children."""


Tree = shape("PaymentTokenTree", **_STATE, children=_Children())


class TokensView(PaymentView):
    """The caller's tokens."""

    read_scope = "payments:read"
    write_scope = "payments:write"

    @extend_schema(operation_id="list_payment_tokens", responses={200: States, **refusals()})
    def get(self, request: Request) -> Response:
        """Return the newest 500, including delegated tokens."""
        tokens = endings.tokens_of(caller(request).pk)
        return Response({"object": "list", "items": [_state(token) for token in tokens]})

    @extend_schema(
        operation_id="create_payment_token",
        request=NewToken,
        responses={201: Issued, **refusals(400, 402, 409)},
    )
    def post(self, request: Request) -> Response:
        """Create a token and move money from the caller's balance into it."""
        values = checked(request, NewToken)
        user_id = caller(request).pk
        limits = {
            limit["period"]: money({"currency": values["currency"], **limit})
            for limit in values["limits"]
        }
        if len(limits) < len(values["limits"]):
            raise ValidationError({"limits": "Send only one limit for each period."})
        made = issuance.issue(
            key=key_of(request, values["idempotencyKey"]),
            user_id=user_id,
            amount=money(values),
            expires_in=values["expiresIn"],
            name=values["name"],
            audience=values["audience"],
            per_use=money(values, "perUseLimit") if "perUseLimit" in values else None,
            limits=limits,
            form=values["form"],
        )
        body = {
            **_state(endings.state_of(made.id, user_id)),
            "token": made.token,
            "replayed": made.replayed,
        }
        headers = {"Idempotent-Replayed": "true"} if made.replayed else {}
        return Response(body, status=201, headers=headers)


class TokenView(PaymentView):
    """One token."""

    read_scope = "payments:read"
    write_scope = "payments:write"

    @extend_schema(operation_id="get_payment_token", responses={200: State, **refusals(404)})
    def get(self, request: Request, token_id: str) -> Response:
        """Return the token without its secret."""
        return Response(_state(endings.state_of(token_id, caller(request).pk)))

    @extend_schema(operation_id="revoke_payment_token", responses={200: Revoked, **refusals(404)})
    def delete(self, request: Request, token_id: str) -> Response:
        """Revoke the token and its descendants; money that is not held is returned immediately."""
        return _revoke(request, token_id)


class TreeView(PaymentView):
    """A token with all its descendants."""

    read_scope = "payments:read"

    @extend_schema(operation_id="get_payment_token_tree", responses={200: Tree, **refusals(404)})
    def get(self, request: Request, token_id: str) -> Response:
        """Return the token with its `children`."""
        return Response(_tree(endings.tree(token_id, caller(request).pk)))


class TokenTopUpView(PaymentView):
    """More money for a token."""

    write_scope = "payments:write"

    @extend_schema(
        operation_id="top_up_payment_token",
        request=TopUp,
        responses={200: ToppedUp, **refusals(400, 402, 404, 409)},
    )
    def post(self, request: Request, token_id: str) -> Response:
        """Move more of the caller's money into the token: the same `jti`, a higher balance."""
        values = checked(request, TopUp)
        user_id = caller(request).pk
        done = top_ups.top_up(
            key=key_of(request, values["idempotencyKey"]),
            token_id=token_id,
            user_id=user_id,
            amount=money(values),
        )
        body = {
            **_state(endings.state_of(token_id, user_id)),
            "jti": token_id,
            "replayed": done.replayed,
        }
        if renewed := top_ups.reissued(token_id, user_id):
            body["token"] = renewed
        headers = {"Idempotent-Replayed": "true"} if done.replayed else {}
        return Response(body, headers=headers)


class RevokeView(PaymentView):
    """Revoking a token, for clients that cannot send DELETE."""

    write_scope = "payments:write"

    @extend_schema(
        operation_id="end_payment_token", request=None, responses={200: Revoked, **refusals(404)}
    )
    def post(self, request: Request, token_id: str) -> Response:
        """Do the same as DELETE."""
        return _revoke(request, token_id)


def _revoke(request: Request, token_id: str) -> Response:
    user_id = caller(request).pk
    returned = endings.revoke(token_id=token_id, user_id=user_id)
    state = endings.state_of(token_id, user_id)
    return Response({**_state(state), "returned": str(returned)})


def _state(state: TokenState) -> dict[str, Any]:
    return {
        "id": state.id,
        "name": state.name,
        "form": state.form,
        "status": state.status,
        "parentId": state.parent_id,
        "depth": state.depth,
        "audience": list(state.audience),
        "balance": str(state.available),
        "balanceDollars": str(state.available),
        "held": str(state.held),
        "currency": state.available.asset,
        "perUseLimit": None if state.per_use is None else str(state.per_use),
        "expiresAt": state.expires_at,
        "createdAt": state.created_at,
    }


def _tree(state: TokenState) -> dict[str, Any]:
    return {**_state(state), "children": [_tree(child) for child in state.children]}
