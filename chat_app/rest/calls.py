"""REST: the current call of a chat, and the servers through which its clients connect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

import uamp
from agents_app.rest.problems import responses
from chat_app.calls.reading import current_call
from chat_app.rest.edge import RestView, check_member
from chat_app.rest.paging import read_query
from chat_app.rest.serializers import NoQuery

if TYPE_CHECKING:
    from rest_framework.request import Request


class CallMemberSerializer(serializers.Serializer[Any]):
    """A person in a call."""

    user_id = serializers.CharField()
    username = serializers.CharField()
    state = serializers.ChoiceField(choices=["ringing", "joined", "declined", "missed", "left"])
    joined_at = serializers.IntegerField(required=False, help_text="Unix milliseconds.")
    rings_until = serializers.IntegerField(required=False, help_text="Unix milliseconds.")


class CallAgentSerializer(serializers.Serializer[Any]):
    """An agent in a call, and the person whose client speaks with it."""

    agent_id = serializers.CharField()
    agent = serializers.CharField(help_text="Its name.")
    host = serializers.CharField(help_text="A user id.")
    state = serializers.ChoiceField(choices=["joined", "left"])
    joined_at = serializers.IntegerField(help_text="Unix milliseconds.")
    reason = serializers.ChoiceField(
        choices=["removed", "host_left", "not_member", "ended"], required=False
    )


class CallSerializer(serializers.Serializer[Any]):
    """A call, as in `call.updated`."""

    call_id = serializers.CharField()
    chat_id = serializers.CharField()
    state = serializers.ChoiceField(choices=["ringing", "running"])
    revision = serializers.IntegerField()
    started_by = serializers.CharField(required=False)
    media = serializers.ListField(child=serializers.CharField(), required=False)
    started_at = serializers.IntegerField(help_text="Unix milliseconds.")
    answered_at = serializers.IntegerField(required=False, help_text="Unix milliseconds.")
    members = CallMemberSerializer(many=True, required=False)
    agents = CallAgentSerializer(many=True, required=False)


class CurrentCallSerializer(serializers.Serializer[Any]):
    """The call of a chat, and how its clients find each other."""

    call = CallSerializer(allow_null=True)
    ice_servers = serializers.ListField(
        child=serializers.DictField(), help_text="RTCIceServer objects for RTCPeerConnection."
    )
    speech_seconds = serializers.IntegerField(
        help_text="The maximum length of one spoken turn to an agent."
    )


class CallView(RestView):
    """The current call of a chat."""

    read_scope = "chats:read"

    @extend_schema(
        operation_id="get_call",
        responses={200: CurrentCallSerializer, **responses(400, 404)},
    )
    def get(self, request: Request, chat_id: str) -> Response:
        """Return the current call, or null, and the STUN and TURN servers to use."""
        read_query(request, NoQuery)
        check_member(request, chat_id)
        call = current_call(chat_id)
        return Response(
            {
                "call": None if call is None else _without_head(uamp.to_dict(call)),
                "ice_servers": settings.ICE_SERVERS,
                "speech_seconds": settings.UAMP_CALL_SPEECH_SECONDS,
            }
        )


def _without_head(event: dict[str, object]) -> dict[str, object]:
    head = {"type", "event_id", "timestamp"}
    return {name: value for name, value in event.items() if name not in head}
