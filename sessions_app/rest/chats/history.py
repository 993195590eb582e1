"""REST: the caller's own UAMP sessions (UAMP §8.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import extend_schema
from rest_framework import serializers

from agents_app.rest.problems import responses
from agents_app.rest.views import caller
from chat_app.rest.edge import RestView
from chat_app.rest.paging import ListQuery, list_of, list_response, read_query, time_page
from sessions_app.models import Session, SessionTransport

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.response import Response


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call] # in the library
    """Describes programs' API keys in the OpenAPI document."""

    target_class = "sessions_app.access.rest.TokenAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:  # noqa: ARG002 the interface's
        """Return the scheme: `Authorization: Bearer <key>`."""
        return {"type": "http", "scheme": "bearer"}


class SessionSerializer(serializers.Serializer[Any]):
    """A UAMP session of the caller."""

    id = serializers.CharField()
    chat_id = serializers.CharField()
    agent = serializers.CharField(allow_null=True)
    status = serializers.CharField(help_text="active while a connection holds it, idle or closed")
    transport = serializers.ChoiceField(
        choices=SessionTransport.choices, help_text="How the session was opened."
    )
    uamp_version = serializers.CharField()
    created_at = serializers.DateTimeField()
    closed_at = serializers.DateTimeField(allow_null=True)
    close_reason = serializers.CharField()


class SessionsQuery(ListQuery):
    """The query parameters of GET /api/v1/sessions."""

    chat = serializers.CharField(required=False, max_length=40, help_text="Only of this chat.")


class SessionsView(RestView):
    """The caller's sessions."""

    read_scope = "chats:read"

    @extend_schema(
        operation_id="list_sessions",
        parameters=[SessionsQuery],
        responses={200: list_of(SessionSerializer), **responses(400)},
    )
    def get(self, request: Request) -> Response:
        """Return a page of sessions, newest first."""
        query = read_query(request, SessionsQuery)
        rows = Session.objects.filter(user=caller(request)).select_related("agent")
        if chat_id := query.get("chat"):
            rows = rows.filter(chat_id=chat_id)
        page = time_page(rows, request, query, field="created_at")
        data = [
            {
                "id": row.wire_id,
                "chat_id": row.chat_id,
                "agent": row.agent.name if row.agent else None,
                "status": row.status,
                "transport": row.transport,
                "uamp_version": row.uamp_version,
                "created_at": row.created_at,
                "closed_at": row.closed_at,
                "close_reason": row.close_reason,
            }
            for row in page.rows
        ]
        return list_response(request, data, next_cursor=page.next_cursor)
