"""REST: a new chat with the history of another (docs/members.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import Throttled
from rest_framework.response import Response
from rest_framework.serializers import ValidationError

from agents_app.rest.operations import LOCATION
from agents_app.rest.problems import Problem, responses
from agents_app.rest.views import caller, rights_of
from chat_app.conversation.errors import MessageNotFound
from chat_app.forks.copies import ForkTooLarge
from chat_app.forks.forking import fork_chat
from chat_app.rest.edge import RestView, check_member
from chat_app.rest.members.member_bodies import chat_data
from chat_app.rest.serializers import ChatSerializer, NewForkSerializer
from sessions_app.access import throttles

if TYPE_CHECKING:
    from rest_framework.request import Request

KEY_CHARS: Final = 128


class ForksView(RestView):
    """Forks of a chat."""

    answers_repeats = True
    write_scope = "chats:write"

    throttle_scope = "forks"

    @extend_schema(
        operation_id="fork_chat",
        parameters=[
            OpenApiParameter("Idempotency-Key", location="header", required=False),
            LOCATION,
        ],
        request=NewForkSerializer,
        responses={201: ChatSerializer, **responses(400, 403, 404, 413, 415)},
    )
    def post(self, request: Request, chat_id: str) -> Response:
        """Create a private copy of the chat's history up to a message.

        Repeating the Idempotency-Key with the same message returns the same chat.
        """
        check_member(request, chat_id)
        body = NewForkSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        key = request.headers.get("Idempotency-Key")
        if key is not None and not 0 < len(key) <= KEY_CHARS:
            raise ValidationError(
                {"Idempotency-Key": f"This header has 1 to {KEY_CHARS} characters."}
            )
        user = caller(request)

        def admit(size: int) -> None:
            quota = throttles.count(request._request, "bytes of text", user.pk, cost=size)  # noqa: SLF001 the public request has no scope
            if not quota.allowed:
                raise Throttled(quota.retry_after)

        values: dict[str, Any] = body.validated_data
        try:
            forked = fork_chat(
                chat_id=chat_id,
                message_id=values["message_id"],
                forked_by=user,
                title=values.get("title"),
                key=None if key is None else f"key {key}",
                admit=admit,
                rights=rights_of(request),
            )
        except MessageNotFound as error:
            raise Http404 from error
        except ForkTooLarge as error:
            raise Problem("quota_exceeded", str(error)) from error
        location = f"/api/v1/chats/{forked.chat_id}"
        return Response(
            chat_data(request, forked.chat_id), status=201, headers={"Location": location}
        )
