"""REST: the caller's chats, how far their members have read, and rendering (docs/rest.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from agents_app.rest.operations import LOCATION
from agents_app.rest.problems import responses
from agents_app.rest.rights import ANY, MissingRight
from agents_app.rest.views import caller, rights_of
from agents_app.workers import connections
from chat_app import markdown
from chat_app.members.chats import ChatChange, create_chat, update_chat
from chat_app.members.inviting import invite_from_elsewhere, is_elsewhere
from chat_app.members.participants import delete_chat
from chat_app.members.receipts import receipts_for
from chat_app.models import ParticipantReplyTrigger
from chat_app.rest import overview
from chat_app.rest.edge import RestView, check_member, visible_chats
from chat_app.rest.members.member_bodies import agents_named, chat_data, refused, user_ids
from chat_app.rest.messages.message_serializers import ReceiptSerializer, receipt_data
from chat_app.rest.paging import list_of, list_response, read_query, time_page
from chat_app.rest.serializers import (
    ChatChangeSerializer,
    ChatSerializer,
    ChatsQuery,
    HtmlSerializer,
    NewChatSerializer,
    NoQuery,
    RenderSerializer,
)

if TYPE_CHECKING:
    from rest_framework.request import Request


class ChatsView(RestView):
    """The caller's chats."""

    read_scope = "chats:read"
    write_scope = "chats:write"
    takes_restricted_keys = True

    @extend_schema(
        operation_id="list_chats",
        parameters=[ChatsQuery],
        responses={200: list_of(ChatSerializer), **responses(400)},
    )
    def get(self, request: Request) -> Response:
        """Return a page of chats, the most recently active first."""
        query = read_query(request, ChatsQuery)
        user = caller(request)
        chats = visible_chats(request)
        if query["kind"] != "all":
            chats = chats.filter(kind=query["kind"])
        page = time_page(chats, request, query, field="latest_at")
        data = overview.chats_data(page.rows, user.pk)
        return list_response(request, data, next_cursor=page.next_cursor)

    @extend_schema(
        operation_id="create_chat",
        parameters=[LOCATION],
        request=NewChatSerializer,
        responses={201: ChatSerializer, **responses(400, 403, 413, 415)},
    )
    def post(self, request: Request) -> Response:
        """Create a group chat with the caller as its owner.

        People of other servers (`name@host`) are invited, and are in the chat once they accept.
        """
        if rights_of(request).chats is not None:
            raise MissingRight(
                "This credential is restricted to certain chats and cannot create others."
            )
        body = NewChatSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        user = caller(request)
        names = body.validated_data
        elsewhere = [name for name in dict.fromkeys(names["users"]) if is_elsewhere(name)]
        others = user_ids([name for name in names["users"] if name not in elsewhere])
        invited = agents_named(names["agents"], request)
        if not others and not elsewhere and len(invited) == 1:
            # In a chat with a single agent, every message addresses it.
            invited = [(invited[0][0], ParticipantReplyTrigger.ALWAYS)]
        # Either all are invited or there is no chat.
        with refused(person="users"), transaction.atomic():
            chat = create_chat(
                title=names["title"],
                created_by_id=user.pk,
                user_ids=[user.pk, *others],
                agents=invited,
                chooses_triggers=rights_of(request).may_commit,
            )
            for name in elsewhere:
                invite_from_elsewhere(chat.pk, user, name)
        location = f"{request.path}/{chat.pk}"
        return Response(chat_data(request, chat.pk), status=201, headers={"Location": location})


class ChatView(RestView):
    """One of the caller's chats."""

    read_scope = "chats:read"
    write_scope = "chats:write"

    @extend_schema(operation_id="get_chat", responses={200: ChatSerializer, **responses(400, 404)})
    def get(self, request: Request, chat_id: str) -> Response:
        """Return the chat."""
        read_query(request, NoQuery)
        return Response(chat_data(request, chat_id))

    @extend_schema(
        operation_id="update_chat",
        request=ChatChangeSerializer,
        responses={200: ChatSerializer, **responses(400, 403, 404, 413, 415)},
    )
    def patch(self, request: Request, chat_id: str) -> Response:
        """Change the chat's title, description or rules; docs/members.md lists who may."""
        check_member(request, chat_id)
        body = ChatChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        with refused():
            update_chat(
                chat_id=chat_id,
                changed_by=caller(request),
                change=ChatChange(**body.validated_data),
                rights=rights_of(request),
            )
        return Response(chat_data(request, chat_id))

    @extend_schema(operation_id="delete_chat", responses={204: None, **responses(403, 404)})
    def delete(self, request: Request, chat_id: str) -> Response:
        """Delete the chat for everyone; only owners may. Running answers are cancelled."""
        check_member(request, chat_id)
        with refused():
            delete_chat(chat_id=chat_id, deleted_by=caller(request))
        return Response(status=204)


class ReceiptsView(RestView):
    """How far each member has read."""

    read_scope = "chats:read"

    @extend_schema(
        operation_id="list_receipts",
        responses={200: list_of(ReceiptSerializer), **responses(400, 404)},
    )
    def get(self, request: Request, chat_id: str) -> Response:
        """Return a chat's markers; a member without one has read nothing, or reads privately."""
        read_query(request, NoQuery)
        check_member(request, chat_id)
        rows = receipts_for(chat_id, caller(request).pk).select_related("user").order_by("pk")
        data = [receipt_data(row) for row in rows]
        return list_response(request, data, next_cursor=None, key="user_id")


class RenderView(RestView):
    """Markdown as the chat shows it."""

    answers_repeats = True
    write_scope = ANY
    takes_restricted_keys = True

    throttle_scope = "renders"

    @extend_schema(
        operation_id="render_text",
        request=RenderSerializer,
        responses={200: HtmlSerializer, **responses(400, 403, 413, 415)},
    )
    def post(self, request: Request) -> Response:
        """Return a piece of text as sanitised HTML."""
        body = RenderSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        asker = f"user:{caller(request).pk}"
        # Others may need the connection while this thread waits for a process.
        connections.release()
        html = markdown.render(body.validated_data["text"], asker=asker)
        return Response({"html": html})
