"""REST: connect tokens with which a person's daemons register agents (docs/agents.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError as DjangoValidationError
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.response import Response

from agents_app import connections
from agents_app import selectors as agents
from agents_app.rest.problems import Problem, responses
from agents_app.rest.strict import StrictSerializer
from agents_app.rest.views import address_of, caller, expiry_of, rights_of
from chat_app.rest.edge import RestView
from chat_app.rest.paging import list_of, list_response, read_query
from chat_app.rest.serializers import NoQuery
from sessions_app.access import connect_tokens, keys
from sessions_app.rest.access.keys import SECRET

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rest_framework.request import Request

    from sessions_app.models import ApiKey


class NewConnectTokenSerializer(StrictSerializer):
    """The body of POST /api/v1/connect-tokens."""

    agent = serializers.CharField(
        max_length=64, help_text="A connected agent of the caller, or an unused name."
    )
    expires_at = serializers.DateTimeField(required=False, allow_null=True)


class ConnectTokenSerializer(serializers.Serializer[Any]):
    """A valid connect token, without its secret."""

    id = serializers.CharField()
    agent = serializers.CharField(help_text="The name of the agent that it registers.")
    agent_id = serializers.CharField()
    online = serializers.BooleanField(help_text="Whether a daemon is connected for the agent.")
    prefix = serializers.CharField(help_text="The beginning of its secret.")
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    used_at = serializers.DateTimeField(allow_null=True, help_text="Accurate to five minutes.")


class ConnectTokenSecretSerializer(ConnectTokenSerializer):
    """A connect token with its secret, which is shown only once."""

    secret = serializers.CharField()


class ConnectTokensView(RestView):
    """The caller's connect tokens."""

    shows_secret = True
    read_scope = "keys:read"
    write_scope = "keys:write"

    @extend_schema(
        operation_id="list_connect_tokens",
        responses={200: list_of(ConnectTokenSerializer), **responses(400, 403)},
    )
    def get(self, request: Request) -> Response:
        """Return the caller's valid connect tokens, newest first."""
        read_query(request, NoQuery)
        data = _data(connect_tokens.tokens_of(caller(request).pk))
        return list_response(request, data, next_cursor=None)

    @extend_schema(
        operation_id="create_connect_token",
        request=NewConnectTokenSerializer,
        responses={201: ConnectTokenSecretSerializer, **responses(400, 403, 409, 413, 415)},
    )
    def post(self, request: Request) -> Response:
        """Create a connect token for one of the caller's connected agents; it is shown only once.

        A name that is not taken becomes a private agent of the caller.
        """
        body = NewConnectTokenSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        values = body.validated_data
        try:
            _, made = connect_tokens.issue(
                caller(request).pk,
                values["agent"],
                expires_at=values.get("expires_at"),
                by=rights_of(request),
                until=expiry_of(request),
                address=address_of(request),
            )
        except connections.NameNotYours:
            raise PermissionDenied("You cannot use this name. Choose another one.") from None
        except DjangoValidationError as error:
            raise ValidationError({"agent": connections.problem_of(error)}) from error
        except connections.TooManyConnectedAgents:
            raise Problem(
                "too_many_agents", "You have the maximum number of connected agents."
            ) from None
        except keys.TooManyKeys:
            raise Problem(
                "too_many_keys",
                "You have the maximum number of keys. Revoke one first.",
            ) from None
        except keys.ImpossibleKey as error:
            raise ValidationError({error.field: str(error)}) from error
        data = {**_data([made.key])[0], "secret": made.secret}
        location = f"/api/v1/connect-tokens/{made.key.pk}"
        return Response(data, status=201, headers={**SECRET, "Location": location})


class ConnectTokenView(RestView):
    """One of the caller's connect tokens."""

    read_scope = "keys:read"
    write_scope = "keys:write"

    @extend_schema(
        operation_id="get_connect_token",
        responses={200: ConnectTokenSerializer, **responses(403, 404)},
    )
    def get(self, request: Request, key_id: str) -> Response:
        """Return a valid connect token."""
        return Response(_data([_own_key(request, key_id)])[0])

    @extend_schema(
        operation_id="revoke_connect_token", responses={204: None, **responses(403, 404)}
    )
    def delete(self, request: Request, key_id: str) -> Response:
        """Revoke a connect token with no more rights than the caller's credential.

        Its daemon is disconnected within five seconds.
        """
        key = _own_key(request, key_id)
        keys.check_within(key.rights, by=rights_of(request))
        if not keys.revoke_key(key, by=caller(request), address=address_of(request)):
            raise Http404
        return Response(status=204)


def _own_key(request: Request, key_id: str) -> ApiKey:
    if (key := connect_tokens.find_token(caller(request).pk, int(key_id))) is None:
        raise Http404
    return key


def _data(rows: Sequence[ApiKey]) -> list[dict[str, Any]]:
    agent_ids = [agent_id for row in rows for agent_id in row.agents or ()]
    names, online = agents.names_of(agent_ids), connections.connected(agent_ids)
    return [
        {
            "id": str(row.pk),
            "agent": names.get(agent_id, ""),
            "agent_id": agent_id,
            "online": agent_id in online,
            "prefix": row.prefix,
            "created_at": row.created_at,
            "expires_at": row.expires_at,
            "used_at": row.used_at,
        }
        for row in rows
        for agent_id in row.agents or ()
    ]
