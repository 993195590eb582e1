"""The base of REST views: a strict JSON object in, JSON out, and the signed-in caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.http import Http404
from rest_framework.exceptions import ParseError
from rest_framework.permissions import SAFE_METHODS
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response
from rest_framework.views import APIView

import uamp
from agents_app.rest import readers
from agents_app.rest.rights import ALL, EVERYTHING, MissingRight, Rights
from agents_app.rest.write_replies import may_show, without_texts
from uamp.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import User
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase
    from rest_framework.renderers import BaseRenderer
    from rest_framework.request import Request

_REFUSED: Final = 400


class JsonView(APIView):
    """A view that answers in JSON whatever Accept says. Subclasses choose parser and caching.

    Each view declares the scopes that a credential needs: `read_scope` for GET, `write_scope` for
    other methods. A credential restricted to chats or agents is accepted if the path names a chat,
    or if `takes_restricted_keys` says that the view itself filters what the credential may not see.
    One with a budget may move money only where `pays_for_answers` says that the budget counts it.
    """

    metadata_class = None
    read_scope: str | None = None
    write_scope: str | None = None
    takes_restricted_keys = False
    pays_for_answers = False
    _reader: str | None = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the caller; a read waits for its turn among those of the same caller."""
        super().initial(request, *args, **kwargs)
        if request.method in SAFE_METHODS:
            reader = f"user:{request.user.pk}" if request.user.pk else address_of(request)
            readers.enter(reader)
            self._reader = reader

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Answer a request, and let the next read of its caller begin."""
        try:
            return super().dispatch(request, *args, **kwargs)
        finally:
            if self._reader is not None:
                readers.leave(self._reader)

    def check_permissions(self, request: Request) -> None:
        """Reject callers without permission and credentials without the required rights.

        Raises MissingRight, and Http404 for a chat that the credential does not cover.
        """
        super().check_permissions(request)
        rights = rights_of(request)
        if rights == ALL:
            return
        scope = self.read_scope if request.method in SAFE_METHODS else self.write_scope
        rights.check(EVERYTHING if scope is None else scope)
        if scope == "payments:write" and not self.pays_for_answers:
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
                "This credential is restricted to certain chats or agents and cannot be used on"
                " this path."
            )

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Keep the texts of chats from a credential that may write there but not read."""
        done: Any = super().finalize_response(request, response, *args, **kwargs)
        is_reply = isinstance(done, Response) and done.status_code < _REFUSED
        if (
            is_reply
            and request.method not in SAFE_METHODS
            and not may_show(rights_of(request), self.write_scope)
        ):
            done.data = without_texts(done.data)
        return done

    def perform_content_negotiation(
        self,
        request: Request,  # noqa: ARG002 part of the interface
        force: bool = False,  # noqa: ARG002, FBT001, FBT002 part of the interface
    ) -> tuple[BaseRenderer, str]:
        """Return the JSON renderer in every case: a 406 would help no client."""
        return JSONRenderer(), JSONRenderer.media_type


def json_object(body: bytes, *, bytes_max: int) -> dict[str, Any]:
    """Parse a body as a JSON object, as strictly as a UAMP frame; raises ParseError."""
    limits = msgspec.structs.replace(DEFAULT_LIMITS, frame_bytes=bytes_max)
    try:
        value = uamp.load_json(body, limits)
    except uamp.RemoteProtocolError as error:
        raise ParseError(f"The body cannot be read: {error.message}.") from error
    if not isinstance(value, dict):
        raise ParseError("The body must be a JSON object.")
    return value


def rights_of(request: Request) -> Rights:
    """Return the rights of a request's credential; a session cookie has all of them."""
    rights: Rights = getattr(request.auth, "rights", ALL)
    return rights


def expiry_of(request: Request) -> datetime | None:
    """Return when a request's credential expires; None if it does not."""
    expires_at: datetime | None = getattr(request.auth, "expires_at", None)
    return expires_at


def address_of(request: Request | HttpRequest) -> str:
    """Return the client's address, for the audit log."""
    return str(request.META.get("REMOTE_ADDR", ""))


def caller(request: Request | HttpRequest) -> User:
    """Return the signed-in person; the view's permissions have rejected all other requests."""
    if not request.user.is_authenticated:
        raise AssertionError(request.path)
    return request.user
