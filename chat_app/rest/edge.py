"""What every REST view shares: JSON in and out, limits, and problems for refusals.

A view knows its caller through `request.user`, passes that caller to a selector or a service,
and answers. A stranger is answered as if nothing were there.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

import msgspec
from django.conf import settings
from django.http import Http404
from django.utils.decorators import method_decorator
from django.views.decorators.cache import cache_control
from django.views.decorators.http import conditional_page
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser
from rest_framework.permissions import AllowAny
from rest_framework.renderers import JSONRenderer
from rest_framework.views import APIView

import uamp
from chat_app.members.chat_lists import chats_of
from chat_app.rest.problems import Problem
from uamp.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.contrib.auth.models import User
    from django.db.models import QuerySet
    from rest_framework.renderers import BaseRenderer
    from rest_framework.request import Request

    from chat_app.models import Chat


class StrictJSONParser(BaseParser):
    """JSON as strict as on the wire, of at most DATA_UPLOAD_MAX_MEMORY_SIZE bytes."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,  # noqa: ARG002 the interface's
        parser_context: Mapping[str, Any] | None = None,  # noqa: ARG002 the interface's
    ) -> Any:
        """Return the value; raises ParseError, and Problem content_too_large."""
        size = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        body = stream.read(size + 1)
        if len(body) > size:
            raise Problem("content_too_large", f"The body has at most {size} bytes.")
        try:
            value = uamp.load_json(body, msgspec.structs.replace(DEFAULT_LIMITS, frame_bytes=size))
        except uamp.RemoteProtocolError as error:
            raise ParseError(f"The body cannot be read: {error.message}.") from error
        if not isinstance(value, dict):
            raise ParseError("The body is a JSON object.")
        return value


@method_decorator(conditional_page, name="dispatch")
@method_decorator(cache_control(private=True, no_cache=True), name="dispatch")
class RestView(APIView):
    """A REST view: JSON whatever Accept says, with an ETag on what can be asked for again."""

    parser_classes: Sequence[type[BaseParser]] = (StrictJSONParser,)
    metadata_class = None

    def perform_content_negotiation(
        self,
        request: Request,  # noqa: ARG002 the interface's
        force: bool = False,  # noqa: ARG002, FBT001, FBT002 the interface's
    ) -> tuple[BaseRenderer, str]:
        """Answer in JSON always: a 406 would help no client."""
        return JSONRenderer(), JSONRenderer.media_type


class UnknownPathView(RestView):
    """Every path below /api that is not another view's."""

    authentication_classes = ()
    permission_classes = (AllowAny,)
    schema = None

    def check_permissions(self, request: Request) -> None:  # noqa: ARG002 the interface's
        """Refuse every method with a problem."""
        raise Http404


def caller(request: Request) -> User:
    """Return the signed-in caller; the view's permission made sure that there is one."""
    if not request.user.is_authenticated:
        raise AssertionError(request.path)
    return request.user


def chats_for(request: Request, chat_id: str) -> QuerySet[Chat]:
    """Return the chat as a queryset that is empty for strangers."""
    return chats_of(caller(request).pk).filter(pk=chat_id)


def check_member(request: Request, chat_id: str) -> None:
    """Raise Http404 for strangers and for chats that do not exist alike."""
    if not chats_for(request, chat_id).exists():
        raise Http404
