"""REST: the signed head of a chat's log (docs/log-chain.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from agents_app.rest.problems import Problem, responses
from chat_app.log.checkpoints import LogChanged, checkpoint_of
from chat_app.rest.edge import RestView, check_member
from chat_app.rest.paging import read_query
from chat_app.rest.serializers import NoQuery
from uamp.logs.checkpoint import read_checkpoint

if TYPE_CHECKING:
    from rest_framework.request import Request


class CheckpointSerializer(serializers.Serializer[Any]):
    """The signed head of a log."""

    chat_id = serializers.CharField()
    seq = serializers.IntegerField(help_text="The last entry of the log.")
    chain_hash = serializers.CharField(help_text="Its chain hash, as hexadecimal digits.")
    note = serializers.CharField(help_text="The signed note of both.")
    created_at = serializers.DateTimeField()


class CheckpointView(RestView):
    """The signed head of a chat's log."""

    read_scope = "chats:read"

    @extend_schema(
        operation_id="get_checkpoint",
        responses={200: CheckpointSerializer, **responses(400, 404, 409)},
    )
    def get(self, request: Request, chat_id: str) -> Response:
        """Return the current head of the log; 404 if its last entry is not in a chain."""
        read_query(request, NoQuery)
        check_member(request, chat_id)
        try:
            row = checkpoint_of(chat_id)
        except LogChanged as error:
            raise Problem("log_changed", "A signed entry of the log was changed.") from error
        if row is None:
            raise Http404
        return Response(
            {
                "chat_id": chat_id,
                "seq": row.seq,
                "chain_hash": read_checkpoint(row.note).chain_hash.hex(),
                "note": row.note,
                "created_at": row.created_at,
            }
        )
