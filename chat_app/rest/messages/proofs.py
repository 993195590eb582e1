"""REST: the proof of one message, which shows no other message of the chat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from agents_app.rest.problems import Problem, responses
from chat_app.log.checkpoints import LogChanged
from chat_app.log_tree.message_proofs import NotProvable, message_proof
from chat_app.rest.edge import RestView
from chat_app.rest.messages.conversation import message_for
from chat_app.rest.paging import read_query
from chat_app.rest.serializers import NoQuery

if TYPE_CHECKING:
    from rest_framework.request import Request


class MessageProofSerializer(serializers.Serializer[Any]):
    """A proof, as `uamp verify` reads it (docs/log-tree.md)."""

    proof = serializers.DictField(help_text="The entries of the log, their heads, and the keys.")


class MessageProofView(RestView):
    """The proof of one message."""

    read_scope = "chats:read"
    throttle_scope = "proofs"

    @extend_schema(
        operation_id="get_message_proof",
        responses={200: MessageProofSerializer, **responses(400, 404, 409, 429)},
    )
    def get(self, request: Request, message_id: str) -> Response:
        """Return the proof; 404 if the message was deleted, or has no signed head near enough."""
        read_query(request, NoQuery)
        try:
            return Response({"proof": message_proof(message_for(request, message_id))})
        except NotProvable:
            raise Http404 from None
        except LogChanged as error:
            raise Problem("log_changed", "A signed entry of the log was changed.") from error
