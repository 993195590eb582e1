"""REST: one-time tickets for sockets and streams (sessions_app.access.tickets)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import Throttled
from rest_framework.response import Response

from agents_app.rest.problems import responses
from agents_app.rest.rights import ANY
from agents_app.rest.strict import StrictSerializer
from agents_app.rest.views import caller
from chat_app.rest.edge import RestView
from sessions_app.access import auth, tickets
from sessions_app.access.principal import Principal

if TYPE_CHECKING:
    from rest_framework.request import Request


class NewTicketSerializer(StrictSerializer):
    """The body of POST /api/v1/tickets: empty, or an empty object."""


class TicketSerializer(serializers.Serializer[Any]):
    """A ticket for one connection."""

    ticket = serializers.CharField(help_text="For `?ticket=`; it works once.")
    expires_at = serializers.DateTimeField()


class TicketsView(RestView):
    """Tickets requested by the caller."""

    answers_repeats = True
    write_scope = ANY
    takes_restricted_keys = True

    @extend_schema(
        operation_id="create_ticket",
        request=NewTicketSerializer,
        responses={201: TicketSerializer, **responses(400, 403, 413, 415, 429)},
    )
    def post(self, request: Request) -> Response:
        """Return a ticket that opens one socket or stream as the caller, within 30 seconds."""
        body = NewTicketSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        principal = request.auth
        if not isinstance(principal, Principal):
            session_key = request.session.session_key or ""
            principal = auth.of_user(caller(request), web_session=session_key)
        try:
            ticket, expires_at = tickets.issue(principal)
        except tickets.TooManyTickets:
            raise Throttled(wait=tickets.TICKET_SECONDS) from None
        data = TicketSerializer({"ticket": ticket, "expires_at": expires_at}).data
        return Response(data, status=201, headers={"Cache-Control": "no-store"})
