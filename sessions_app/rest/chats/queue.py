"""REST: a chat's queue of messages to send once the running answers have ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.response import Response

import uamp
from agents_app.rest.problems import responses
from agents_app.rest.rights import MissingRight
from agents_app.rest.views import caller
from chat_app.rest.edge import RestView, check_member
from chat_app.rest.paging import read_query
from chat_app.rest.serializers import NoQuery
from sessions_app.access import auth
from sessions_app.access.principal import Principal
from sessions_app.queue import rows
from sessions_app.queue.reading import queue_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from rest_framework.request import Request


class QueueItemSerializer(serializers.Serializer[Any]):
    """A queued message with its full text."""

    id = serializers.CharField()
    user_id = serializers.CharField()
    username = serializers.CharField()
    text = serializers.CharField()
    files = serializers.IntegerField(required=False)
    status = serializers.ChoiceField(choices=["queued", "starting", "failed"])
    code = serializers.CharField(required=False)
    reason = serializers.CharField(required=False)
    client_event_id = serializers.CharField()
    queued_at = serializers.IntegerField(help_text="Unix milliseconds.")


class QueueSerializer(serializers.Serializer[Any]):
    """The queue of a chat, next message first."""

    data = QueueItemSerializer(many=True)  # type: ignore[assignment]  # the name on the wire


class QueueView(RestView):
    """The queue of a chat."""

    read_scope = "chats:read"

    @extend_schema(
        operation_id="list_queue", responses={200: QueueSerializer, **responses(400, 404)}
    )
    def get(self, request: Request, chat_id: str) -> Response:
        """Return all queued messages of a chat; there are at most 50."""
        read_query(request, NoQuery)
        check_member(request, chat_id)
        items = uamp.to_dict(queue_of(chat_id, whole=True)).get("items", [])
        return Response({"data": items})


class QueueItemView(RestView):
    """One queued message."""

    write_scope = "messages:write"

    @extend_schema(
        operation_id="remove_queued_message", responses={204: None, **responses(403, 404)}
    )
    def delete(self, request: Request, chat_id: str, item_id: str) -> Response:
        """Remove the caller's own queued message or, as an owner of the chat, any such message."""
        _act(rows.remove, request, chat_id, item_id)
        return Response(status=204)


class QueueStartView(RestView):
    """Sending of one queued message."""

    write_scope = "messages:write"

    @extend_schema(
        operation_id="start_queued_message",
        request=None,
        responses={202: None, **responses(403, 404)},
    )
    def post(self, request: Request, chat_id: str, item_id: str) -> Response:
        """Send the caller's own message alongside running answers, or retry a failed one."""
        _act(rows.start_now, request, chat_id, item_id)
        return Response(status=202)


def _act(
    act: Callable[[str, str, Principal], None], request: Request, chat_id: str, item_id: str
) -> None:
    check_member(request, chat_id)
    principal = request.auth
    if not isinstance(principal, Principal):
        principal = auth.of_user(caller(request))
    try:
        act(chat_id, item_id, principal)
    except rows.NoSuchQueuedTurn as error:
        raise Http404 from error
    except rows.MoreRights as error:
        raise MissingRight(rows.MORE_RIGHTS) from error
    except rows.NotTheirs as error:
        raise PermissionDenied(
            "Only the author of a queued message may send it. The author or an owner may remove it."
        ) from error
