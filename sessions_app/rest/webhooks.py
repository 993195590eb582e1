"""REST: the caller's webhooks for their chats, and their deliveries (docs/webhooks.md)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response

from agents_app.rest.operations import LOCATION
from agents_app.rest.problems import Problem, responses
from agents_app.rest.strict import StrictSerializer
from agents_app.rest.views import address_of, caller, rights_of
from chat_app.members.membership import NotAMember
from chat_app.rest.edge import RestView, check_member
from chat_app.rest.paging import SEQ_MAX, ListQuery, id_page, list_of, list_response, read_query
from sessions_app.states import DeliveryState
from sessions_app.webhooks import chat_webhooks
from sessions_app.webhooks.chat_webhooks import KEEPS_SECRET, TYPES
from uamp import RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rest_framework.request import Request

    from sessions_app.models import Webhook, WebhookDelivery

_SHOWN_ONCE = {"Cache-Control": "no-store"}
_URL = "https, on port 443 or 8443 of a public host."
_TYPES = "The events that are sent; all if empty."


class WebhooksQuery(ListQuery):
    """The query parameters of GET /api/v1/webhooks."""

    chat = serializers.CharField(
        required=False, max_length=40, help_text="Only the webhooks of one chat."
    )


class DeliveriesQuery(ListQuery):
    """The query parameters of GET /api/v1/webhooks/{id}/deliveries."""

    status = serializers.ChoiceField(
        choices=[state.value for state in DeliveryState], required=False
    )


class _WebhookBody(StrictSerializer):
    url = serializers.CharField(max_length=2048, help_text=_URL)
    name = serializers.CharField(max_length=100, allow_blank=True, help_text="For people.")
    types = serializers.ListField(
        child=serializers.ChoiceField(choices=list(TYPES)),
        max_length=len(TYPES),
        help_text=_TYPES,
    )
    after = serializers.IntegerField(
        min_value=0, max_value=SEQ_MAX, help_text="The `seq` after which events are sent."
    )


class NewWebhookSerializer(_WebhookBody):
    """The body of POST /api/v1/webhooks; without `after`, it starts with events from now on."""

    chat = serializers.CharField(max_length=40, help_text="The id of a chat of the caller.")
    name = serializers.CharField(
        max_length=100, allow_blank=True, required=False, default="", help_text="For people."
    )
    types = serializers.ListField(
        child=serializers.ChoiceField(choices=list(TYPES)),
        max_length=len(TYPES),
        required=False,
        help_text=_TYPES,
    )
    after = serializers.IntegerField(
        min_value=0,
        max_value=SEQ_MAX,
        required=False,
        help_text="The `seq` after which events are sent.",
    )


class WebhookChangeSerializer(_WebhookBody):
    """The body of PATCH /api/v1/webhooks/{id}."""

    enabled = serializers.BooleanField(help_text="false stops it; true resumes where it stopped.")


class WebhookRotationSerializer(StrictSerializer):
    """The body of POST /api/v1/webhooks/{id}/rotate."""

    keep_seconds = serializers.IntegerField(
        default=0,
        min_value=0,
        max_value=int(KEEPS_SECRET.total_seconds()),
        help_text="How long bodies are also signed with the previous secret.",
    )


class WebhookSerializer(serializers.Serializer[Any]):
    """A webhook, without its secret."""

    id = serializers.CharField()
    chat = serializers.CharField()
    url = serializers.CharField()
    name = serializers.CharField()
    types = serializers.ListField(child=serializers.CharField(), help_text=_TYPES)
    enabled = serializers.BooleanField()
    stopped_at = serializers.DateTimeField(allow_null=True)
    stopped_reason = serializers.CharField(allow_null=True)
    seq = serializers.IntegerField(help_text="The place of the log up to which it was queued.")
    created_at = serializers.DateTimeField()


class WebhookSecretSerializer(WebhookSerializer):
    """A webhook with its secret, which is shown only once."""

    secret = serializers.CharField(help_text="`whsec_` and 32 bytes in base64.")


class DeliverySerializer(serializers.Serializer[Any]):
    """The delivery of an event to a receiver."""

    id = serializers.CharField()
    type = serializers.CharField(help_text="`ping`, or the type of the event.")
    seq = serializers.IntegerField(allow_null=True, help_text="Its place in the chat's log.")
    status = serializers.ChoiceField(choices=[state.value for state in DeliveryState])
    attempts = serializers.IntegerField()
    http_status = serializers.IntegerField(allow_null=True, help_text="The receiver's last answer.")
    error = serializers.CharField(allow_null=True)
    next_attempt_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class _WebhookView(RestView):
    read_scope = "webhooks:read"
    write_scope = "webhooks:write"
    takes_restricted_keys = True


class WebhooksView(_WebhookView):
    """The caller's webhooks."""

    shows_secret = True

    @extend_schema(
        operation_id="list_webhooks",
        parameters=[WebhooksQuery],
        responses={200: list_of(WebhookSerializer), **responses(400, 403)},
    )
    def get(self, request: Request) -> Response:
        """Return a page of the caller's webhooks, newest first."""
        query = read_query(request, WebhooksQuery)
        rows = chat_webhooks.webhooks_of(caller(request).pk, chats=rights_of(request).chats)
        if "chat" in query:
            rows = rows.filter(chat=query["chat"])
        page = id_page(rows, request, query, falling=True)
        data = [webhook_data(row) for row in page.rows]
        return list_response(request, data, next_cursor=page.next_cursor)

    @extend_schema(
        operation_id="create_webhook",
        parameters=[LOCATION],
        request=NewWebhookSerializer,
        responses={201: WebhookSecretSerializer, **responses(400, 403, 404, 409, 413, 415)},
    )
    def post(self, request: Request) -> Response:
        """Create a webhook for a chat that the credential may read; its secret is shown once."""
        rights_of(request).check("chats:read")
        body = NewWebhookSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        values = body.validated_data
        check_member(request, values["chat"])
        webhook_request = chat_webhooks.WebhookRequest(
            chat_id=values["chat"],
            url=values["url"],
            name=values["name"],
            types=values.get("types", ()),
            after=values.get("after"),
        )
        try:
            made = chat_webhooks.make(
                caller(request).pk, webhook_request, address=address_of(request)
            )
        except NotAMember:
            raise Http404 from None
        except chat_webhooks.TooManyWebhooks:
            raise Problem("too_many_webhooks", "Delete one, then create another.") from None
        except RemoteProtocolError as error:
            raise ValidationError({"url": error.message}) from error
        return _secret_response(made, status=201)


class WebhookView(_WebhookView):
    """One of the caller's webhooks."""

    @extend_schema(
        operation_id="get_webhook", responses={200: WebhookSerializer, **responses(403, 404)}
    )
    def get(self, request: Request, webhook_id: str) -> Response:
        """Return a webhook."""
        return Response(webhook_data(_own_webhook(request, webhook_id)))

    @extend_schema(
        operation_id="change_webhook",
        request=WebhookChangeSerializer(partial=True),
        responses={200: WebhookSerializer, **responses(400, 403, 404, 412, 413, 415)},
    )
    def patch(self, request: Request, webhook_id: str) -> Response:
        """Change a webhook of a chat that the credential may read; omitted fields are unchanged."""
        rights_of(request).check("chats:read")
        row = _own_webhook(request, webhook_id)
        body = WebhookChangeSerializer(data=request.data, partial=True)
        body.is_valid(raise_exception=True)
        try:
            changed = chat_webhooks.change(
                row, body.validated_data, by=caller(request), address=address_of(request)
            )
        except LookupError:
            raise Http404 from None
        except RemoteProtocolError as error:
            raise ValidationError({"url": error.message}) from error
        return Response(webhook_data(changed))

    @extend_schema(operation_id="delete_webhook", responses={204: None, **responses(403, 404, 412)})
    def delete(self, request: Request, webhook_id: str) -> Response:
        """Delete a webhook, which stops its deliveries."""
        row = _own_webhook(request, webhook_id)
        chat_webhooks.delete(row, by=caller(request), address=address_of(request))
        return Response(status=204)


class WebhookRotationView(_WebhookView):
    """Rotation of the secret of one of the caller's webhooks."""

    shows_secret = True

    @extend_schema(
        operation_id="rotate_webhook",
        request=WebhookRotationSerializer,
        responses={200: WebhookSecretSerializer, **responses(400, 403, 404, 413, 415)},
    )
    def post(self, request: Request, webhook_id: str) -> Response:
        """Replace the secret of a webhook; the new one is shown only once."""
        row = _own_webhook(request, webhook_id)
        body = WebhookRotationSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        keep = timedelta(seconds=body.validated_data["keep_seconds"])
        try:
            made = chat_webhooks.rotate(
                row, by=caller(request), keep=keep, address=address_of(request)
            )
        except LookupError:
            raise Http404 from None
        return _secret_response(made)


class WebhookPingView(_WebhookView):
    """A test of one of the caller's webhooks."""

    throttle_scope = "webhooks"

    @extend_schema(
        operation_id="ping_webhook",
        request=None,
        responses={202: DeliverySerializer, **responses(403, 404, 409)},
    )
    def post(self, request: Request, webhook_id: str) -> Response:
        """Send a `ping`. Returns the delivery; poll it until it has ended."""
        row = _own_webhook(request, webhook_id)
        return _queued(lambda: chat_webhooks.ping(row))


class WebhookDeliveriesView(_WebhookView):
    """Deliveries to one of the caller's webhooks."""

    @extend_schema(
        operation_id="list_webhook_deliveries",
        parameters=[DeliveriesQuery],
        responses={200: list_of(DeliverySerializer), **responses(400, 403, 404)},
    )
    def get(self, request: Request, webhook_id: str) -> Response:
        """Return a page of deliveries, newest first; they are kept for UAMP_REPEAT_DAYS."""
        query = read_query(request, DeliveriesQuery)
        rows = chat_webhooks.deliveries_of(_own_webhook(request, webhook_id))
        if "status" in query:
            rows = rows.filter(status=query["status"])
        if query.get("status") == DeliveryState.QUEUED:
            # The same rows, but this condition has an index.
            rows = rows.filter(finished_at__isnull=True)
        page = id_page(rows, request, query, falling=True, field="number")
        data = [delivery_data(row) for row in page.rows]
        return list_response(request, data, next_cursor=page.next_cursor)


class WebhookDeliveryView(_WebhookView):
    """The delivery of an event to a receiver."""

    @extend_schema(
        operation_id="get_webhook_delivery",
        responses={200: DeliverySerializer, **responses(403, 404)},
    )
    def get(self, request: Request, webhook_id: str, delivery_id: str) -> Response:
        """Return a delivery."""
        return Response(delivery_data(_own_delivery(request, webhook_id, delivery_id)))


class RedeliveryView(_WebhookView):
    """Repeated deliveries."""

    throttle_scope = "webhooks"

    @extend_schema(
        operation_id="redeliver_webhook",
        request=None,
        responses={202: DeliverySerializer, **responses(403, 404, 409)},
    )
    def post(self, request: Request, webhook_id: str, delivery_id: str) -> Response:
        """Repeat a delivery as a new one, with the same event id."""
        rights_of(request).check("chats:read")
        row = _own_delivery(request, webhook_id, delivery_id)
        return _queued(lambda: chat_webhooks.redeliver(row))


def webhook_data(row: Webhook) -> dict[str, Any]:
    """Return a webhook in the format of WebhookSerializer."""
    return {
        "id": str(row.pk),
        "chat": row.chat_id,
        "url": row.url,
        "name": row.name,
        "types": row.types,
        "enabled": row.disabled_at is None,
        "stopped_at": row.disabled_at,
        "stopped_reason": row.disabled_reason or None,
        "seq": row.queued_seq,
        "created_at": row.created_at,
    }


def delivery_data(row: WebhookDelivery) -> dict[str, Any]:
    """Return a delivery in the format of DeliverySerializer."""
    return {
        "id": str(row.pk),
        "type": row.state,
        "seq": row.seq,
        "status": row.status,
        "attempts": row.attempts,
        "http_status": row.http_status,
        "error": row.error or None,
        "next_attempt_at": row.due_at if row.finished_at is None else None,
        "created_at": row.created_at,
        "finished_at": row.finished_at,
    }


def _secret_response(made: chat_webhooks.WebhookSecret, *, status: int = 200) -> Response:
    data = {**webhook_data(made.webhook), "secret": made.secret}
    location = {"Location": f"/api/v1/webhooks/{made.webhook.pk}"}
    return Response(data, status=status, headers={**_SHOWN_ONCE, **location})


def _queued(queue: Callable[[], WebhookDelivery]) -> Response:
    try:
        delivery = queue()
    except LookupError:
        raise Http404 from None
    except chat_webhooks.WebhookStopped:
        raise Problem("webhook_stopped", "Enable it, then try again.") from None
    except chat_webhooks.TooManyUnsent:
        raise Problem("too_many_unsent", "Wait until some have been sent.") from None
    return Response(delivery_data(delivery), status=202)


def _own_webhook(request: Request, webhook_id: str) -> Webhook:
    rows = chat_webhooks.webhooks_of(caller(request).pk, chats=rights_of(request).chats)
    row = rows.filter(pk=int(webhook_id)).first()
    if row is None:
        raise Http404
    return row


def _own_delivery(request: Request, webhook_id: str, delivery_id: str) -> WebhookDelivery:
    rows = chat_webhooks.deliveries_of(_own_webhook(request, webhook_id)).select_related("webhook")
    row = rows.filter(pk=int(delivery_id)).first()
    if row is None:
        raise Http404
    return row
