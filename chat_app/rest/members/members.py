"""REST: the members of a chat, their roles, how agents answer, and what one member mutes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth.models import User
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.serializers import ValidationError

from agents_app.rest.operations import LOCATION
from agents_app.rest.problems import responses
from agents_app.rest.views import caller, rights_of
from chat_app.log.homes import guests_among
from chat_app.members import participants
from chat_app.members.agents import agent_settings
from chat_app.members.agents.agent_settings import AgentSettings
from chat_app.members.inviting import invite_from_elsewhere, is_elsewhere
from chat_app.members.muting import set_muted
from chat_app.members.places import set_place
from chat_app.members.presence import online_user_ids
from chat_app.models import Participant
from chat_app.rest import overview
from chat_app.rest.edge import RestView, check_member, check_opens
from chat_app.rest.members.member_bodies import agents_named, chat_data, refused, user_ids
from chat_app.rest.paging import list_of, list_response, read_query
from chat_app.rest.serializers import (
    ChatSerializer,
    InvitedSerializer,
    MuteSerializer,
    NewParticipantSerializer,
    NoQuery,
    ParticipantChangeSerializer,
    ParticipantSerializer,
    PlaceSerializer,
)

if TYPE_CHECKING:
    from rest_framework.request import Request


class ParticipantsView(RestView):
    """The members of a chat."""

    read_scope = "chats:read"
    write_scope = "chats:write"

    @extend_schema(
        operation_id="list_participants",
        responses={200: list_of(ParticipantSerializer), **responses(400, 404)},
    )
    def get(self, request: Request, chat_id: str) -> Response:
        """Return the members, in the order of joining."""
        read_query(request, NoQuery)
        members = chat_data(request, chat_id)["participants"]
        return list_response(request, members, next_cursor=None, key="participant_id")

    @extend_schema(
        operation_id="add_participant",
        parameters=[LOCATION],
        request=NewParticipantSerializer,
        responses={
            200: ParticipantSerializer,
            201: ParticipantSerializer,
            202: InvitedSerializer,
            **responses(400, 403, 404, 413, 415),
        },
    )
    def post(self, request: Request, chat_id: str) -> Response:
        """Add a person or an agent; status 200 for one who is a member, and stays as they are.

        A person of another server, `name@host`, is invited (202). New members read what was
        written before, so the credential has to be able to read the chat (`chats:read`).
        """
        check_opens(request, chat_id)
        body = NewParticipantSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        names = body.validated_data
        user = caller(request)
        members = Participant.objects.filter(chat_id=chat_id, left_at__isnull=True)
        member_ids = set(members.values_list("pk", flat=True))
        with refused():
            if "user" in names and is_elsewhere(names["user"]):
                invitation = invite_from_elsewhere(chat_id, user, names["user"])
                return Response({"invitation": invitation}, status=202)
            if "user" in names:
                added = User.objects.get(pk=user_ids([names["user"]], "/user")[0])
                row = participants.add_participant(chat_id=chat_id, added_by=user, user=added)
            else:
                ((agent_id, trigger),) = agents_named([names["agent"]], request, "/agent")
                row = participants.add_participant(
                    chat_id=chat_id,
                    added_by=user,
                    agent_id=agent_id,
                    trigger=names.get("trigger", trigger),
                    rights=rights_of(request),
                )
        location = {"Location": f"{request.path}/{row.pk}"}
        status = 200 if row.pk in member_ids else 201
        return Response(_member_data(row), status=status, headers=location)


class ParticipantView(RestView):
    """One membership."""

    read_scope = "chats:read"
    write_scope = "chats:write"

    @extend_schema(
        operation_id="get_participant",
        responses={200: ParticipantSerializer, **responses(400, 404)},
    )
    def get(self, request: Request, chat_id: str, participant_id: str) -> Response:
        """Return one member of a chat."""
        read_query(request, NoQuery)
        for member in chat_data(request, chat_id)["participants"]:
            if member["participant_id"] == int(participant_id):
                return Response(member)
        raise Http404

    @extend_schema(
        operation_id="update_participant",
        request=ParticipantChangeSerializer,
        responses={200: ParticipantSerializer, **responses(400, 403, 404, 413, 415)},
    )
    def patch(self, request: Request, chat_id: str, participant_id: str) -> Response:
        """Change the role of a person, or how an agent answers in this chat."""
        check_member(request, chat_id)
        body = ParticipantChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        values = body.validated_data
        if "role" in values and len(values) > 1:
            raise ValidationError("Change the role of a person, or how an agent answers.")
        user, pk = caller(request), int(participant_id)
        with refused():
            if "role" in values:
                participants.change_role(
                    chat_id=chat_id, changed_by=user, participant_id=pk, role=values["role"]
                )
            else:
                change = AgentSettings(**values)
                agent_settings.set_agent(
                    chat_id=chat_id,
                    changed_by=user,
                    participant_id=pk,
                    change=change,
                    rights=rights_of(request),
                )
        return Response(_member_data(Participant.objects.get(pk=pk)))

    @extend_schema(operation_id="remove_participant", responses={204: None, **responses(403, 404)})
    def delete(self, request: Request, chat_id: str, participant_id: str) -> Response:
        """Leave a chat, or, as an owner or admin, remove a member."""
        with refused():
            participants.remove_participant(
                chat_id=chat_id,
                removed_by=caller(request),
                participant_id=int(participant_id),
            )
        return Response(status=204)


class MuteView(RestView):
    """Whether a chat notifies the caller."""

    write_scope = "chats:write"

    @extend_schema(
        operation_id="mute_chat",
        request=MuteSerializer,
        responses={200: ChatSerializer, **responses(400, 403, 404, 413, 415)},
    )
    def put(self, request: Request, chat_id: str) -> Response:
        """Mute the chat for the caller, or set what notifies them; other members do not see it."""
        check_member(request, chat_id)
        body = MuteSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        with refused():
            set_muted(chat_id=chat_id, user_id=caller(request).pk, **body.validated_data)
        return Response(chat_data(request, chat_id))


class PlaceView(RestView):
    """Where the caller's list shows a chat."""

    write_scope = "chats:write"

    @extend_schema(
        operation_id="place_chat",
        request=PlaceSerializer,
        responses={200: ChatSerializer, **responses(400, 403, 404, 413, 415)},
    )
    def put(self, request: Request, chat_id: str) -> Response:
        """Pin, archive or mark the chat as unread for the caller; other members do not see it."""
        check_member(request, chat_id)
        body = PlaceSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        with refused():
            set_place(chat_id=chat_id, user_id=caller(request).pk, **body.validated_data)
        return Response(chat_data(request, chat_id))


def _member_data(row: Participant) -> dict[str, object]:
    online = online_user_ids([row.user_id] if row.user_id is not None else [])
    away = {} if row.user is None else guests_among({row.user.pk: row.user.get_username()})
    return overview.participant_data(row, online=online, away=away)
