"""REST: the links of a chat that show it to others, or let them join (docs/links.md)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from agents_app.rest.operations import LOCATION
from agents_app.rest.problems import Problem, responses
from agents_app.rest.strict import StrictSerializer
from agents_app.rest.views import caller
from chat_app.links import invite_links, share_links
from chat_app.members.link_validity import TooManyLinks
from chat_app.models import ParticipantRole
from chat_app.rest.edge import RestView, check_member, check_opens
from chat_app.rest.members.member_bodies import refused
from chat_app.rest.paging import list_of, list_response, read_query
from chat_app.rest.serializers import NoQuery

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rest_framework.request import Request

    from chat_app.members.link_validity import AnyLink
    from chat_app.models import InviteLink, ShareLink

LISTED: Final = 200
"""How many of a chat's links are listed, newest first."""


class NewShareLinkSerializer(StrictSerializer):
    """A share link to create."""

    title = serializers.CharField(required=False, allow_blank=True, max_length=200)
    grows = serializers.BooleanField(
        required=False, help_text="Whether it also shows later messages."
    )
    days = serializers.IntegerField(required=False, min_value=1)


class NewInviteLinkSerializer(StrictSerializer):
    """An invite link to create."""

    role = serializers.ChoiceField(required=False, choices=ParticipantRole.choices)
    most_uses = serializers.IntegerField(required=False, min_value=1, max_value=10_000)
    days = serializers.IntegerField(required=False, min_value=1)


class _LinkSerializer(serializers.Serializer[Any]):
    """The base of both kinds of link."""

    id = serializers.CharField()
    created_by = serializers.CharField(help_text="The creator's name.")
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    state = serializers.CharField(help_text="active, expired or revoked")
    revoked_by = serializers.CharField(
        allow_null=True, help_text="null if the server ended it because its creator lost the right."
    )
    url = serializers.CharField(required=False, help_text="Only in the response that creates it.")


class ShareLinkSerializer(_LinkSerializer):
    """A share link."""

    title = serializers.CharField()
    grows = serializers.BooleanField()
    opened_count = serializers.IntegerField()
    opened_at = serializers.DateTimeField(allow_null=True)


class InviteLinkSerializer(_LinkSerializer):
    """An invite link."""

    role = serializers.CharField()
    most_uses = serializers.IntegerField(allow_null=True)
    used_count = serializers.IntegerField()
    used_at = serializers.DateTimeField(allow_null=True)


class ShareLinksView(RestView):
    """The share links of a chat."""

    shows_secret = True
    read_scope = "chats:read"
    write_scope = "chats:write"

    @extend_schema(
        operation_id="list_share_links",
        responses={200: list_of(ShareLinkSerializer), **responses(400, 404)},
    )
    def get(self, request: Request, chat_id: str) -> Response:
        """Return the links, newest first: every member may know that the chat is shared."""
        read_query(request, NoQuery)
        check_member(request, chat_id)
        links = [_share_data(link) for link in share_links.share_links(chat_id)[:LISTED]]
        return list_response(request, links, next_cursor=None)

    @extend_schema(
        operation_id="create_share_link",
        parameters=[LOCATION],
        request=NewShareLinkSerializer,
        responses={201: ShareLinkSerializer, **responses(400, 403, 404, 409, 413, 415)},
    )
    def post(self, request: Request, chat_id: str) -> Response:
        """Create a link to a chat that the credential may read (`chats:read`).

        Only this response contains its address.
        """
        check_opens(request, chat_id)
        body = NewShareLinkSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        _check_days(body.validated_data)
        with refused(), _bounded():
            link, secret = share_links.create_share_link(
                chat_id=chat_id, made_by=caller(request), **body.validated_data
            )
        address = request.build_absolute_uri(f"/shared/{secret}")
        location = {"Location": f"{request.path}/{link.pk}"}
        return Response({**_share_data(link), "url": address}, status=201, headers=location)


class ShareLinkView(RestView):
    """One share link."""

    write_scope = "chats:write"

    @extend_schema(operation_id="revoke_share_link", responses={204: None, **responses(403, 404)})
    def delete(self, request: Request, chat_id: str, link_id: str) -> Response:
        """Revoke the link: its page is no longer found."""
        with refused():
            share_links.revoke_share_link(
                chat_id=chat_id, link_id=int(link_id), revoked_by=caller(request)
            )
        return Response(status=204)


class InviteLinksView(RestView):
    """The invite links of a chat."""

    shows_secret = True
    read_scope = "chats:write"
    write_scope = "chats:write"

    @extend_schema(
        operation_id="list_invite_links",
        responses={200: list_of(InviteLinkSerializer), **responses(400, 404)},
    )
    def get(self, request: Request, chat_id: str) -> Response:
        """Return the links, the newest first."""
        read_query(request, NoQuery)
        check_member(request, chat_id)
        links = [_invite_data(link) for link in invite_links.invite_links(chat_id)[:LISTED]]
        return list_response(request, links, next_cursor=None)

    @extend_schema(
        operation_id="create_invite_link",
        parameters=[LOCATION],
        request=NewInviteLinkSerializer,
        responses={201: InviteLinkSerializer, **responses(400, 403, 404, 409, 413, 415)},
    )
    def post(self, request: Request, chat_id: str) -> Response:
        """Create a link to a chat that the credential may read (`chats:read`).

        Only this response contains its address.
        """
        check_opens(request, chat_id)
        body = NewInviteLinkSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        _check_days(body.validated_data)
        with refused(), _bounded():
            link, secret = invite_links.create_invite_link(
                chat_id=chat_id, made_by=caller(request), **body.validated_data
            )
        address = request.build_absolute_uri(f"/join/{secret}")
        location = {"Location": f"{request.path}/{link.pk}"}
        return Response({**_invite_data(link), "url": address}, status=201, headers=location)


class InviteLinkView(RestView):
    """One invite link."""

    write_scope = "chats:write"

    @extend_schema(operation_id="revoke_invite_link", responses={204: None, **responses(403, 404)})
    def delete(self, request: Request, chat_id: str, link_id: str) -> Response:
        """Revoke the link: it can no longer be used to join."""
        with refused():
            invite_links.revoke_invite_link(
                chat_id=chat_id, link_id=int(link_id), revoked_by=caller(request)
            )
        return Response(status=204)


@contextmanager
def _bounded() -> Iterator[None]:
    """Answer with a 409 if the chat has as many links as allowed."""
    try:
        yield
    except TooManyLinks as error:
        raise Problem("too_many_links", "Revoke a link of this chat first.") from error


def _check_days(body: dict[str, Any]) -> None:
    if body.get("days", 1) > (limit := settings.UAMP_LINK_DAYS_MAX):
        raise serializers.ValidationError({"days": f"A link is valid for at most {limit} days."})


def _link_data(link: AnyLink) -> dict[str, Any]:
    state = "expired" if link.expires_at <= timezone.now() else "active"
    return {
        "id": str(link.pk),
        "created_by": link.created_by.get_username() if link.created_by else "",
        "created_at": link.created_at,
        "expires_at": link.expires_at,
        "state": "revoked" if link.revoked_at else state,
        "revoked_by": link.revoked_by.get_username() if link.revoked_by else None,
    }


def _share_data(link: ShareLink) -> dict[str, Any]:
    return {
        **_link_data(link),
        "title": link.title,
        "grows": link.until_seq is None,
        "opened_count": link.opened_count,
        "opened_at": link.opened_at,
    }


def _invite_data(link: InviteLink) -> dict[str, Any]:
    return {
        **_link_data(link),
        "role": str(link.role),
        "most_uses": link.most_uses,
        "used_count": link.used_count,
        "used_at": link.used_at,
    }
