"""REST: the caller's browsers that receive notifications while no page is open (Web Push)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.response import Response

from agents_app.outbound.rules import URL_CHARS
from agents_app.rest.problems import responses
from agents_app.rest.strict import StrictSerializer
from agents_app.rest.views import caller
from chat_app.push import subscriptions
from chat_app.push.subscriptions import InvalidSubscription
from chat_app.push.vapid import application_server_key, server_key
from chat_app.rest.edge import RestView
from chat_app.rest.paging import list_of, list_response, read_query
from chat_app.rest.serializers import NoQuery

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rest_framework.request import Request

    from chat_app.models import PushSubscription


class PushKeySerializer(serializers.Serializer[Any]):
    """The key with which a browser subscribes."""

    key = serializers.CharField(help_text="The `applicationServerKey`, in base64url.")


class NewPushSubscriptionSerializer(StrictSerializer):
    """A subscription of the browser that sends the request (`PushSubscription.toJSON()`)."""

    endpoint = serializers.CharField(max_length=URL_CHARS)
    p256dh = serializers.CharField(max_length=88, help_text="65 bytes in base64url.")
    auth = serializers.CharField(max_length=24, help_text="16 bytes in base64url.")


class PushSubscriptionSerializer(serializers.Serializer[Any]):
    """A browser that receives the caller's notifications. Its address and keys are not shown."""

    id = serializers.CharField()
    device = serializers.CharField(help_text="Such as `Firefox on Linux`.")
    created_at = serializers.DateTimeField()
    sent_at = serializers.DateTimeField(
        allow_null=True, help_text="When its push service last accepted a message."
    )
    failures = serializers.IntegerField(
        help_text="Consecutive messages that its push service did not accept."
    )


def subscription_data(row: PushSubscription) -> dict[str, Any]:
    """Return a subscription as described by PushSubscriptionSerializer."""
    names = ("device", "created_at", "sent_at", "failures")
    return {"id": str(row.pk), **{name: getattr(row, name) for name in names}}


@contextmanager
def _refused() -> Iterator[None]:
    try:
        yield
    except InvalidSubscription as error:
        raise ValidationError({error.field: str(error)}) from error


class PushKeyView(RestView):
    """The server's key for Web Push (RFC 8292)."""

    read_scope = "account:read"
    takes_restricted_keys = True

    @extend_schema(
        operation_id="get_push_key", responses={200: PushKeySerializer, **responses(400)}
    )
    def get(self, request: Request) -> Response:
        """Return the public key, which changes when an operator rotates it."""
        read_query(request, NoQuery)
        return Response({"key": application_server_key(server_key())})


class PushSubscriptionsView(RestView):
    """The caller's browsers."""

    # A repeat changes nothing: the address identifies the subscription.
    answers_repeats = True
    read_scope = "account:read"
    write_scope = "account:write"

    @extend_schema(
        operation_id="list_push_subscriptions",
        responses={200: list_of(PushSubscriptionSerializer), **responses(400)},
    )
    def get(self, request: Request) -> Response:
        """List the browsers, newest first."""
        read_query(request, NoQuery)
        rows = subscriptions.subscriptions_of(caller(request))
        return list_response(request, [subscription_data(row) for row in rows], next_cursor=None)

    @extend_schema(
        operation_id="create_push_subscription",
        request=NewPushSubscriptionSerializer,
        responses={
            200: PushSubscriptionSerializer,
            201: PushSubscriptionSerializer,
            **responses(400, 403, 413, 415),
        },
    )
    def post(self, request: Request) -> Response:
        """Send notifications to the browser that asks; for browsers that are signed in, not keys.

        A subscription that is known is renewed (200). It ends with the browser's session.
        """
        body = NewPushSubscriptionSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        with _refused():
            subscriptions.check(**body.validated_data)
        session_key = request.session.session_key
        if request.auth is not None or not session_key:
            raise PermissionDenied("Only signed-in browsers can get notifications.")
        row, is_new = subscriptions.subscribe(
            caller(request),
            session_key=session_key,
            server_key=server_key().kid,
            user_agent=str(request.META.get("HTTP_USER_AGENT", "")),
            **body.validated_data,
        )
        return Response(subscription_data(row), status=201 if is_new else 200)


class PushSubscriptionView(RestView):
    """One of the caller's browsers."""

    write_scope = "account:write"

    @extend_schema(
        operation_id="delete_push_subscription", responses={204: None, **responses(403, 404)}
    )
    def delete(self, request: Request, subscription_id: str) -> Response:
        """Send no more notifications to a browser."""
        if not subscriptions.remove(caller(request), int(subscription_id)):
            raise Http404
        return Response(status=204)
