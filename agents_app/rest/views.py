"""The base of REST views: a strict JSON object in, JSON out, and the signed-in caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from django.http import Http404
from rest_framework import serializers
from rest_framework.exceptions import ParseError
from rest_framework.permissions import SAFE_METHODS
from rest_framework.renderers import JSONRenderer
from rest_framework.views import APIView

import uamp
from agents_app.rest.rights import ALL, EVERYTHING, MissingRight, Rights
from uamp.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest
    from rest_framework.renderers import BaseRenderer
    from rest_framework.request import Request


class JsonView(APIView):
    """A view that answers in JSON whatever Accept says. Subclasses choose parser and caching.

    Each declares the scopes that a credential needs: `read_scope` for GET, `write_scope` for the
    other methods. A credential that is restricted to chats or agents is taken where the path names
    a chat, and where `takes_restricted_keys` says that the view itself leaves out what the
    credential may not see.
    """

    metadata_class = None
    read_scope: str | None = None
    write_scope: str | None = None
    takes_restricted_keys = False

    def check_permissions(self, request: Request) -> None:
        """Refuse who may not call the view, and a credential without the right to this.

        Raises MissingRight, and Http404 for a chat that the credential is not for.
        """
        super().check_permissions(request)
        rights = rights_of(request)
        if rights == ALL:
            return
        scope = self.read_scope if request.method in SAFE_METHODS else self.write_scope
        rights.check(EVERYTHING if scope is None else scope)
        if scope == "payments:write":
            rights.check_pays()
        self._check_restrictions(rights)

    def _check_restrictions(self, rights: Rights) -> None:
        chat_id = self.kwargs.get("chat_id")
        if chat_id is not None:
            if not rights.sees_chat(chat_id):
                raise Http404
        elif not self.takes_restricted_keys and (
            rights.chats is not None or rights.agents is not None
        ):
            raise MissingRight(
                "This credential is for certain chats or agents. This path is not of one chat."
            )

    def perform_content_negotiation(
        self,
        request: Request,  # noqa: ARG002 the interface's
        force: bool = False,  # noqa: ARG002, FBT001, FBT002 the interface's
    ) -> tuple[BaseRenderer, str]:
        """Return the JSON renderer always: a 406 would help no client."""
        return JSONRenderer(), JSONRenderer.media_type


class StrictSerializer(serializers.Serializer[Any]):
    """A body whose members are all known."""

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse members that the view does not read; raises ValidationError."""
        # A serializer within another one has no data of its own.
        body = getattr(self, "initial_data", None)
        if isinstance(body, dict) and (unknown := set(body) - set(self.fields)):
            raise serializers.ValidationError(
                {str(name): "This member is not known." for name in sorted(unknown)}
            )
        return attrs


def json_object(body: bytes, *, bytes_max: int) -> dict[str, Any]:
    """Return the object of a body, read as strictly as a frame of UAMP; raises ParseError."""
    limits = msgspec.structs.replace(DEFAULT_LIMITS, frame_bytes=bytes_max)
    try:
        value = uamp.load_json(body, limits)
    except uamp.RemoteProtocolError as error:
        raise ParseError(f"The body cannot be read: {error.message}.") from error
    if not isinstance(value, dict):
        raise ParseError("The body is a JSON object.")
    return value


def rights_of(request: Request) -> Rights:
    """Return the rights of the credential of a request; all of them for a session cookie."""
    rights: Rights = getattr(request.auth, "rights", ALL)
    return rights


def address_of(request: Request | HttpRequest) -> str:
    """Return the address of the client, for the audit."""
    return str(request.META.get("REMOTE_ADDR", ""))


def caller(request: Request | HttpRequest) -> User:
    """Return the signed-in person; the view's permission has refused every other request."""
    if not request.user.is_authenticated:
        raise AssertionError(request.path)
    return request.user
