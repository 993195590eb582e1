"""REST: summaries of the pages that a message links to (docs/link-cards.md)."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from agents_app.rest.problems import responses
from agents_app.rest.views import rights_of
from chat_app.link_cards.cards import Cards, cards_of
from chat_app.link_cards.tasks import ask
from chat_app.rest.edge import RestView
from chat_app.rest.messages.conversation import message_for

if TYPE_CHECKING:
    from rest_framework.request import Request


class LinkCardSerializer(serializers.Serializer[Any]):
    """A summary of a page; everything but `url` is the page's own claim."""

    url = serializers.CharField(help_text="As the message has it.")
    title = serializers.CharField()
    description = serializers.CharField(allow_blank=True)
    site = serializers.CharField(allow_blank=True)


class LinkCardsSerializer(serializers.Serializer[Any]):
    """The cards of a message."""

    cards = LinkCardSerializer(many=True)
    pending = serializers.BooleanField(
        help_text="More cards are being fetched: request them again in a moment."
    )


class LinkCardsView(RestView):
    """The cards of a message."""

    write_scope = "messages:write"
    takes_restricted_keys = True

    throttle_scope = "link cards"

    @extend_schema(
        operation_id="read_link_cards",
        request=None,
        responses={200: LinkCardsSerializer, **responses(403, 404)},
    )
    def post(self, request: Request, message_id: str) -> Response:
        """Return the cards of a message that the credential may read (`chats:read`).

        Pages that are not known are read now.
        """
        return self.repeated(request, message_id)

    def repeated(self, request: Request, message_id: str) -> Response:
        """Return the cards to those who may still read the message."""
        rights_of(request).check("chats:read")
        message = message_for(request, message_id)
        cards = cards_of(message, ask) if settings.UAMP_LINK_CARDS else Cards([], pending=False)
        return Response({"cards": [asdict(card) for card in cards.cards], "pending": cards.pending})
