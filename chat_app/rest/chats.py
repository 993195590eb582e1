"""REST: the caller, agents and people, the caller's chats and their members (docs/rest.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import User
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import PermissionDenied
from rest_framework.response import Response
from rest_framework.serializers import ValidationError

from agents_app import selectors as agents
from agents_app.rest.problems import responses
from agents_app.rest.views import caller
from agents_app.workers import connections
from chat_app import markdown
from chat_app.members import membership, participants
from chat_app.members.chat_lists import chats_of
from chat_app.members.chats import NoSponsor, create_chat, update_chat
from chat_app.members.presence import online_user_ids
from chat_app.models import ParticipantReplyTrigger, ReadReceipt
from chat_app.rest import overview
from chat_app.rest.edge import RestView, chats_for, check_member
from chat_app.rest.message_serializers import ReceiptSerializer, receipt_data
from chat_app.rest.paging import list_of, list_response, read_query, time_page
from chat_app.rest.serializers import (
    AgentSerializer,
    ChatChangeSerializer,
    ChatSerializer,
    ChatsQuery,
    HtmlSerializer,
    MeSerializer,
    NewChatSerializer,
    NewParticipantSerializer,
    NoQuery,
    ParticipantSerializer,
    PeopleQuery,
    PersonSerializer,
    RenderSerializer,
)

if TYPE_CHECKING:
    from rest_framework.request import Request

PEOPLE_MAX = 50


class MeView(RestView):
    """The caller."""

    @extend_schema(operation_id="get_me", responses={200: MeSerializer, **responses(400)})
    def get(self, request: Request) -> Response:
        """Return the caller."""
        read_query(request, NoQuery)
        user = caller(request)
        return Response({"id": str(user.pk), "username": user.get_username()})


class AgentsView(RestView):
    """The agents that the caller may use."""

    @extend_schema(
        operation_id="list_agents", responses={200: list_of(AgentSerializer), **responses(400)}
    )
    def get(self, request: Request) -> Response:
        """Return all of them, by name."""
        read_query(request, NoQuery)
        data = [
            {
                "id": spec.id,
                "name": spec.name,
                "description": spec.description,
                "pricing": overview.pricing_data(spec.pricing),
            }
            for spec in agents.list_agents(caller(request))
        ]
        return list_response(request, data, next_cursor=None, key="name")


class UsersView(RestView):
    """The people that the caller can add to a chat."""

    @extend_schema(
        operation_id="list_users",
        parameters=[PeopleQuery],
        responses={200: list_of(PersonSerializer), **responses(400)},
    )
    def get(self, request: Request) -> Response:
        """Return the first people, by name, whose name starts with `q`."""
        query = read_query(request, PeopleQuery)
        people = (
            User.objects.filter(is_active=True, username__istartswith=query["q"])
            .exclude(pk=caller(request).pk)
            .order_by("username")[:PEOPLE_MAX]
        )
        data = [{"id": str(user.pk), "username": user.get_username()} for user in people]
        return list_response(request, data, next_cursor=None)


class ChatsView(RestView):
    """The caller's chats."""

    @extend_schema(
        operation_id="list_chats",
        parameters=[ChatsQuery],
        responses={200: list_of(ChatSerializer), **responses(400)},
    )
    def get(self, request: Request) -> Response:
        """Return a page of chats, the one with the latest event first."""
        query = read_query(request, ChatsQuery)
        user = caller(request)
        chats = chats_of(user.pk)
        if query["kind"] != "all":
            chats = chats.filter(kind=query["kind"])
        page = time_page(chats, request, query, field="latest_at")
        data = overview.chats_data(page.rows, user.pk)
        return list_response(request, data, next_cursor=page.next_cursor)

    @extend_schema(
        operation_id="create_chat",
        request=NewChatSerializer,
        responses={201: ChatSerializer, **responses(400, 403, 413, 415)},
    )
    def post(self, request: Request) -> Response:
        """Create a group chat with the caller as its owner."""
        body = NewChatSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        user = caller(request)
        names = body.validated_data
        others = _user_ids(names["users"])
        invited = _agents(names["agents"], user)
        if not others and len(invited) == 1:
            # Alone with one agent, everything that is said is said to it.
            invited = [(invited[0][0], ParticipantReplyTrigger.ALWAYS)]
        chat = create_chat(
            title=names["title"],
            created_by_id=user.pk,
            user_ids=[user.pk, *others],
            agents=invited,
        )
        location = f"{request.path}/{chat.pk}"
        return Response(_chat_data(request, chat.pk), status=201, headers={"Location": location})


class ChatView(RestView):
    """One of the caller's chats."""

    @extend_schema(operation_id="get_chat", responses={200: ChatSerializer, **responses(400, 404)})
    def get(self, request: Request, chat_id: str) -> Response:
        """Return the chat."""
        read_query(request, NoQuery)
        return Response(_chat_data(request, chat_id))

    @extend_schema(
        operation_id="update_chat",
        request=ChatChangeSerializer,
        responses={200: ChatSerializer, **responses(400, 403, 404, 413, 415)},
    )
    def patch(self, request: Request, chat_id: str) -> Response:
        """Change the title, the payer or who pins messages; only an owner may."""
        check_member(request, chat_id)
        body = ChatChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        try:
            update_chat(chat_id=chat_id, changed_by=caller(request), **body.validated_data)
        except membership.NotAMember as error:
            raise Http404 from error
        except membership.NotAnOwner as error:
            raise PermissionDenied("Only an owner of the chat may change it.") from error
        except NoSponsor as error:
            raise ValidationError(
                {"payer": "No agent of this chat has an owner who pays for its answers."}
            ) from error
        return Response(_chat_data(request, chat_id))


class ParticipantsView(RestView):
    """The members of a chat."""

    @extend_schema(
        operation_id="list_participants",
        responses={200: list_of(ParticipantSerializer), **responses(400, 404)},
    )
    def get(self, request: Request, chat_id: str) -> Response:
        """Return the members, in the order in which they came."""
        read_query(request, NoQuery)
        members = _chat_data(request, chat_id)["participants"]
        return list_response(request, members, next_cursor=None, key="participant_id")

    @extend_schema(
        operation_id="add_participant",
        request=NewParticipantSerializer,
        responses={201: ParticipantSerializer, **responses(400, 403, 404, 413, 415)},
    )
    def post(self, request: Request, chat_id: str) -> Response:
        """Add a person or an agent; a member who is there already stays as they are."""
        check_member(request, chat_id)
        body = NewParticipantSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        names = body.validated_data
        user = caller(request)
        try:
            if "user" in names:
                added = User.objects.get(pk=_user_ids([names["user"]], "/user")[0])
                row = participants.add_participant(chat_id=chat_id, added_by=user, user=added)
            else:
                ((agent_id, trigger),) = _agents([names["agent"]], user, "/agent")
                row = participants.add_participant(
                    chat_id=chat_id,
                    added_by=user,
                    agent_id=agent_id,
                    trigger=names.get("trigger", trigger),
                )
        except membership.NotAMember as error:
            raise Http404 from error
        except membership.NotAnOwner as error:
            raise PermissionDenied(
                "The owner or the pool pays in this chat: ask an owner to add the agent."
            ) from error
        online = online_user_ids([row.user_id] if row.user_id is not None else [])
        return Response(overview.participant_data(row, online=online), status=201)


class ParticipantView(RestView):
    """One membership."""

    @extend_schema(operation_id="remove_participant", responses={204: None, **responses(403, 404)})
    def delete(self, request: Request, chat_id: str, participant_id: str) -> Response:
        """Leave a chat, or, as an owner, remove a member."""
        try:
            participants.remove_participant(
                chat_id=chat_id,
                removed_by=caller(request),
                participant_id=int(participant_id),
            )
        except membership.NotAMember as error:
            raise Http404 from error
        return Response(status=204)


class ReceiptsView(RestView):
    """How far each member has read."""

    @extend_schema(
        operation_id="list_receipts",
        responses={200: list_of(ReceiptSerializer), **responses(400, 404)},
    )
    def get(self, request: Request, chat_id: str) -> Response:
        """Return the markers of a chat; a member without one has read nothing."""
        read_query(request, NoQuery)
        check_member(request, chat_id)
        rows = ReadReceipt.objects.filter(chat_id=chat_id).select_related("user").order_by("pk")
        data = [receipt_data(row) for row in rows]
        return list_response(request, data, next_cursor=None, key="user_id")


class RenderView(RestView):
    """Markdown as the chat shows it."""

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


def _chat_data(request: Request, chat_id: str) -> dict[str, Any]:
    """Return a chat as the caller sees it; raises Http404 for strangers."""
    rows = list(chats_for(request, chat_id))
    if not rows:
        raise Http404
    return overview.chats_data(rows, caller(request).pk)[0]


def _user_ids(usernames: list[str], pointer: str = "/users") -> list[int]:
    """Return the ids of active people; raises ValidationError that names the others."""
    known = dict(
        User.objects.filter(username__in=usernames, is_active=True).values_list("username", "pk")
    )
    missing = [name for name in usernames if name not in known]
    if missing:
        raise _unknown(pointer, missing)
    return [known[name] for name in usernames]


def _agents(names: list[str], user: User, pointer: str = "/agents") -> list[tuple[str, str]]:
    """Return ids and trigger rules of agents that a person may use; raises ValidationError."""
    found: dict[str, str] = {}
    missing = []
    for name in names:
        if (spec := agents.get_agent(name, viewer=user)) is None:
            missing.append(name)
        else:
            found[spec.id] = spec.trigger
    if missing:
        raise _unknown(pointer, missing)
    return list(found.items())


def _unknown(pointer: str, names: list[str]) -> ValidationError:
    kind = "agent that you may use" if pointer.startswith("/agent") else "person"
    member = pointer.lstrip("/")
    return ValidationError({member: [f"There is no {kind} named {name!r}." for name in names]})
