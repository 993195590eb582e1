"""What every REST view shares: a strict JSON object in, JSON out, and the signed-in caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from rest_framework import serializers
from rest_framework.exceptions import ParseError
from rest_framework.renderers import JSONRenderer
from rest_framework.views import APIView

import uamp
from uamp.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest
    from rest_framework.renderers import BaseRenderer
    from rest_framework.request import Request


class JsonView(APIView):
    """A view that answers in JSON whatever Accept says. Subclasses choose parser and caching."""

    metadata_class = None

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


def caller(request: Request | HttpRequest) -> User:
    """Return the signed-in person; the view's permission has refused every other request."""
    if not request.user.is_authenticated:
        raise AssertionError(request.path)
    return request.user
