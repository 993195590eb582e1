"""REST: the caller's own API keys (docs/identity.md)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response

from agents_app import selectors
from agents_app.rest.operations import LOCATION
from agents_app.rest.problems import Problem, responses
from agents_app.rest.rights import ANY, PROTOCOLS, Rights, unknown_scopes
from agents_app.rest.strict import StrictSerializer
from agents_app.rest.views import address_of, caller, expiry_of, rights_of
from chat_app.rest.edge import RestView
from chat_app.rest.paging import list_of, list_response, read_query
from chat_app.rest.serializers import NoQuery
from payments_app.money import DEFAULT_ASSET, InvalidAmount, Money
from payments_app.spending.periods import PERIODS
from sessions_app.access import keys

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from rest_framework.request import Request

    from payments_app.spending.limits import LimitState
    from sessions_app.models import ApiKey

SECRET: Any = {"Cache-Control": "no-store"}


class KeyBudgetSerializer(StrictSerializer):
    """The budget of a key."""

    amount = serializers.CharField(max_length=40, help_text="A decimal string.")
    period = serializers.ChoiceField(choices=PERIODS)
    currency = serializers.CharField(max_length=10, default=DEFAULT_ASSET)


class KeyBudgetStateSerializer(serializers.Serializer[Any]):
    """A budget and its use in the current period; amounts are decimal strings."""

    amount = serializers.CharField()
    period = serializers.ChoiceField(choices=PERIODS)
    currency = serializers.CharField()
    spent = serializers.CharField()
    held = serializers.CharField(help_text="The amount reserved for running answers.")
    resets_at = serializers.DateTimeField()


class NewKeySerializer(StrictSerializer):
    """The body of POST /api/v1/keys."""

    name = serializers.CharField(max_length=100, help_text="The purpose of the key.")
    scopes = serializers.ListField(
        child=serializers.CharField(max_length=40),
        max_length=40,
        help_text="See docs/identity.md; `*` grants all, `chats:*` all that begin with chats.",
    )
    chats = serializers.ListField(
        child=serializers.CharField(max_length=40),
        max_length=keys.RESTRICTED_TO,
        required=False,
        allow_null=True,
        help_text="The ids of the chats that it is restricted to.",
    )
    agents = serializers.ListField(
        child=serializers.CharField(max_length=64),
        max_length=keys.RESTRICTED_TO,
        required=False,
        allow_null=True,
        help_text="The agents that it is restricted to, by id or name.",
    )
    protocols = serializers.ListField(
        child=serializers.ChoiceField(choices=list(PROTOCOLS)),
        max_length=len(PROTOCOLS),
        required=False,
        allow_null=True,
        help_text="The protocols that it is restricted to.",
    )
    budget = KeyBudgetSerializer(required=False, allow_null=True)
    expires_at = serializers.DateTimeField(required=False, allow_null=True)

    def validate_scopes(self, scopes: list[str]) -> list[str]:
        """Refuse scopes that do not exist, together with what is wrong elsewhere."""
        if unknown := unknown_scopes(scopes):
            raise serializers.ValidationError(f"There is no scope named {unknown[0]}.")
        return scopes

    def validate_expires_at(self, at: datetime | None) -> datetime | None:
        """Refuse a time in the past."""
        if at is not None and at <= timezone.now():
            raise serializers.ValidationError("The expiry date is in the past.")
        return at


class RotationSerializer(StrictSerializer):
    """The body of POST /api/v1/keys/{id}/rotate."""

    keep_seconds = serializers.IntegerField(
        default=0,
        min_value=0,
        max_value=int(keys.KEEPS_SECRET.total_seconds()),
        help_text="How long the previous secret stays valid; 0 ends it and its connections now.",
    )


class KeySerializer(serializers.Serializer[Any]):
    """A valid key, without its secret; null means no restriction."""

    id = serializers.CharField()
    name = serializers.CharField()
    prefix = serializers.CharField(help_text="The beginning of its secret.")
    scopes = serializers.ListField(child=serializers.CharField())
    chats = serializers.ListField(child=serializers.CharField(), allow_null=True)
    agents = serializers.ListField(child=serializers.CharField(), allow_null=True)
    protocols = serializers.ListField(child=serializers.CharField(), allow_null=True)
    budget = KeyBudgetStateSerializer(allow_null=True)
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    used_at = serializers.DateTimeField(allow_null=True, help_text="Accurate to five minutes.")
    previous_until = serializers.DateTimeField(
        allow_null=True, help_text="Until when the previous secret is valid alongside the new one."
    )


class OwnKeySerializer(KeySerializer):
    """The key of a request, and the person whose it is."""

    user_id = serializers.CharField(help_text="The `sender_id` of the person's messages.")
    username = serializers.CharField()


class KeySecretSerializer(KeySerializer):
    """A key with its secret, which is shown only once."""

    secret = serializers.CharField()


class KeysView(RestView):
    """The caller's keys."""

    shows_secret = True
    read_scope = "keys:read"
    write_scope = "keys:write"

    @extend_schema(
        operation_id="list_keys", responses={200: list_of(KeySerializer), **responses(400, 403)}
    )
    def get(self, request: Request) -> Response:
        """Return the caller's valid keys, newest first; there are at most 100."""
        read_query(request, NoQuery)
        data = keys_data(keys.keys_of(caller(request).pk))
        return list_response(request, data, next_cursor=None)

    @extend_schema(
        operation_id="create_key",
        parameters=[LOCATION],
        request=NewKeySerializer,
        responses={201: KeySecretSerializer, **responses(400, 403, 409, 413, 415)},
    )
    def post(self, request: Request) -> Response:
        """Create a key with no more rights than the caller's credential; it is shown only once.

        With a credential that expires, it expires no later.
        """
        body = NewKeySerializer(data=request.data)
        body.is_valid(raise_exception=True)
        try:
            made = keys.make_key(
                caller(request).pk,
                _key_request(body.validated_data, caller(request).pk),
                by=rights_of(request),
                until=expiry_of(request),
                address=address_of(request),
            )
        except keys.TooManyKeys:
            raise _too_many() from None
        except keys.ImpossibleKey as error:
            raise ValidationError({error.field: str(error)}) from error
        return _secret_response(made, status=201)


class KeyView(RestView):
    """One of the caller's keys."""

    read_scope = "keys:read"
    write_scope = "keys:write"

    def check_permissions(self, request: Request) -> None:
        """Let each key revoke itself, whatever its scopes and limits are."""
        if request.method == "DELETE" and request.auth is not None:
            key = keys.find_key(caller(request).pk, int(self.kwargs["key_id"]))
            if key is not None and _is_itself(request, key):
                return
        super().check_permissions(request)

    @extend_schema(operation_id="get_key", responses={200: KeySerializer, **responses(403, 404)})
    def get(self, request: Request, key_id: str) -> Response:
        """Return a valid key."""
        return Response(keys_data([_own_key(request, key_id)])[0])

    @extend_schema(operation_id="revoke_key", responses={204: None, **responses(403, 404)})
    def delete(self, request: Request, key_id: str) -> Response:
        """Revoke a key with no more rights than the caller's credential, or the credential itself.

        Its connections end within five seconds.
        """
        key = _own_key(request, key_id)
        if not _is_itself(request, key):
            keys.check_within(key.rights, by=rights_of(request))
        if not keys.revoke_key(key, by=caller(request), address=address_of(request)):
            raise Http404
        return Response(status=204)


class OwnKeyView(RestView):
    """The key of a request."""

    read_scope = ANY
    takes_restricted_keys = True

    @extend_schema(
        operation_id="get_own_key", responses={200: OwnKeySerializer, **responses(400, 404)}
    )
    def get(self, request: Request) -> Response:
        """Return the key of the request: whose it is, what it may do, and what is left of it.

        A 404 for a request that is sent with something else.
        """
        read_query(request, NoQuery)
        key_id = getattr(request.auth, "api_key_id", None)
        key = None if key_id is None else keys.find_key(caller(request).pk, key_id)
        if key is None:
            raise Http404
        person = caller(request)
        whose = {"user_id": str(person.pk), "username": person.get_username()}
        return Response({**keys_data([key])[0], **whose})


class KeyRotationView(RestView):
    """Rotation of the secret of one of the caller's keys."""

    shows_secret = True
    write_scope = "keys:write"

    @extend_schema(
        operation_id="rotate_key",
        request=RotationSerializer,
        responses={200: KeySecretSerializer, **responses(400, 403, 404, 413, 415)},
    )
    def post(self, request: Request, key_id: str) -> Response:
        """Replace the secret of a key that neither exceeds nor outlasts the caller's credential."""
        key = _own_key(request, key_id)
        body = RotationSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        keys.check_within(key.rights, by=rights_of(request))
        keys.check_lasts(key.expires_at, until=expiry_of(request))
        keep = timedelta(seconds=body.validated_data["keep_seconds"])
        try:
            made = keys.rotate_key(key, by=caller(request), keep=keep, address=address_of(request))
        except LookupError:
            raise Http404 from None
        return _secret_response(made)


def keys_data(rows: Sequence[ApiKey]) -> list[dict[str, Any]]:
    """Return keys in their REST format."""
    budgets = keys.budgets_of(rows)
    return [_data(row, budgets.get(row.pk)) for row in rows]


def _data(row: ApiKey, budget: LimitState | None) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "name": row.name,
        "prefix": row.prefix,
        "scopes": row.scopes,
        "chats": row.chats,
        "agents": row.agents,
        "protocols": row.protocols,
        "budget": None if budget is None else _budget_data(budget),
        "created_at": row.created_at,
        "expires_at": row.expires_at,
        "used_at": row.used_at,
        "previous_until": row.previous_until,
    }


def _budget_data(state: LimitState) -> dict[str, Any]:
    return {
        "amount": str(state.limit.amount),
        "period": state.limit.period,
        "currency": state.limit.amount.asset,
        "spent": str(state.spent),
        "held": str(state.held),
        "resets_at": state.resets_at,
    }


def _secret_response(made: keys.NewSecret, *, status: int = 200) -> Response:
    data = {**keys_data([made.key])[0], "secret": made.secret}
    location = {"Location": f"/api/v1/keys/{made.key.pk}"}
    return Response(data, status=status, headers={**SECRET, **location})


def _own_key(request: Request, key_id: str) -> ApiKey:
    if (key := keys.find_key(caller(request).pk, int(key_id))) is None:
        raise Http404
    return key


def _is_itself(request: Request, key: ApiKey) -> bool:
    """Return whether a request is sent with a key, not with a token of it that may do less."""
    is_of_key = getattr(request.auth, "api_key_id", None) == key.pk
    return is_of_key and rights_of(request).includes(key.rights)


def _key_request(values: dict[str, Any], user_id: int) -> keys.KeyRequest:
    budget = values.get("budget")
    return keys.KeyRequest(
        name=values["name"],
        rights=Rights(
            scopes=frozenset(values["scopes"]),
            chats=_set(values.get("chats")),
            agents=_agents(values.get("agents"), user_id),
            protocols=_set(values.get("protocols")),
        ),
        expires_at=values.get("expires_at"),
        budget=None
        if budget is None
        else keys.KeyBudget(
            amount=_amount(budget["amount"], budget["currency"]), period=budget["period"]
        ),
    )


def _set(names: Sequence[str] | None) -> frozenset[str] | None:
    return None if names is None else frozenset(names)


def _agents(names: Sequence[str] | None, user_id: int) -> frozenset[str] | None:
    """Return the ids of agents given by id or name; an unknown one stays as it is."""
    if names is None:
        return None
    by_name = {spec.name: spec.id for spec in selectors.list_agents(user_id)}
    return frozenset(by_name.get(name, name) for name in names)


def _amount(text: str, currency: str) -> Money:
    try:
        return Money.parse(text, currency)
    except InvalidAmount as error:
        raise ValidationError({"budget": {"amount": str(error)}}) from error


def _too_many() -> Problem:
    limit = settings.UAMP_KEYS_PER_USER
    return Problem(
        "too_many_keys", f"You have the maximum number of keys ({limit}). Revoke one first."
    )
