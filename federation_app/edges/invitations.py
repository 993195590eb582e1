"""REST: invitations to chats of other servers, and of people there to chats here (ADR 66)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.serializers import ValidationError

from agents_app.rest.problems import responses
from agents_app.rest.strict import StrictSerializer
from agents_app.rest.views import caller
from chat_app.rest.edge import RestView
from chat_app.rest.paging import list_of, list_response, read_query
from chat_app.rest.serializers import NoQuery
from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from federation_app.guests import invitations

if TYPE_CHECKING:
    from rest_framework.request import Request

    from federation_app.models import GuestInvitation


class InvitationSerializer(serializers.Serializer[Any]):
    """An invitation that the caller received (`from` is the inviter) or sent (`to`)."""

    id = serializers.CharField()
    direction = serializers.ChoiceField(choices=["received", "sent"])
    person = serializers.CharField(help_text="The person of the other server: name@host.")
    title = serializers.CharField(help_text="The title of the chat when it was sent.")
    state = serializers.CharField()
    created_at = serializers.DateTimeField()


class InvitationAnswerSerializer(StrictSerializer):
    """The body of POST /api/v1/invitations/{id}."""

    answer = serializers.ChoiceField(choices=["accept", "decline", "block", "withdraw"])


class InvitationsView(RestView):
    """The open invitations of the caller."""

    read_scope = "chats:read"

    @extend_schema(
        operation_id="list_invitations",
        responses={200: list_of(InvitationSerializer), **responses(400)},
    )
    def get(self, request: Request) -> Response:
        """Return the open invitations that the caller received or sent, the newest first."""
        read_query(request, NoQuery)
        rows = invitations.open_invitations(caller(request))
        return list_response(request, [_data(row) for row in rows], next_cursor=None)


class InvitationView(RestView):
    """One invitation."""

    write_scope = "chats:write"

    @extend_schema(
        operation_id="answer_invitation",
        request=InvitationAnswerSerializer,
        responses={200: InvitationSerializer, **responses(400, 404, 413, 415)},
    )
    def post(self, request: Request, invitation_id: str) -> Response:
        """Accept, decline or block a received invitation, or withdraw one that was sent.

        `block` also refuses further invitations by the same person. After `accept` the chat appears
        when its server has confirmed it.
        """
        body = InvitationAnswerSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        try:
            row = invitations.answer(
                user=caller(request),
                invitation_id=invitation_id,
                answer=body.validated_data["answer"],
            )
        except EnvelopeError as error:
            if error.code is EnvelopeCode.NOT_FOUND:
                raise Http404 from None
            raise ValidationError({"answer": error.message}) from None
        return Response(_data(row))


def _data(row: GuestInvitation) -> dict[str, Any]:
    return {
        "id": row.invitation_id,
        "direction": "received" if row.is_received else "sent",
        "person": row.name,
        "title": row.title,
        "state": row.state,
        "created_at": row.created_at,
    }
