"""The base of the REST views of chats: caching, body size, membership.

A view passes the caller to a selector or a service. A person who is not a member gets the same 404
as for a chat that does not exist.
"""

from __future__ import annotations

from functools import partial
from hashlib import md5
from http import HTTPStatus
from typing import IO, TYPE_CHECKING, Any

from django.conf import settings
from django.http import Http404, QueryDict
from django.utils.cache import patch_cache_control, set_response_etag
from django.utils.decorators import method_decorator
from django.utils.http import parse_etags, quote_etag
from django.views.decorators.cache import cache_control
from django.views.decorators.http import conditional_page
from rest_framework.parsers import BaseParser
from rest_framework.permissions import SAFE_METHODS, AllowAny
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

from agents_app.rest.problems import Problem, UnknownPath
from agents_app.rest.views import JsonView, caller, json_object, rights_of
from chat_app.members.chat_lists import chats_of
from chat_app.rest.repeats import RepeatableRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase
    from rest_framework.request import Request

    from chat_app.models import Chat


class StrictJSONParser(BaseParser):
    """JSON parsed as strictly as on the wire, of at most DATA_UPLOAD_MAX_MEMORY_SIZE bytes."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,  # noqa: ARG002 required by the interface
        parser_context: Mapping[str, Any] | None = None,  # noqa: ARG002 required by the interface
    ) -> dict[str, Any]:
        """Return the object; raises ParseError, and Problem content_too_large."""
        size = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        body = stream.read(size + 1)
        if len(body) > size:
            raise Problem("content_too_large", f"The body may have at most {size} bytes.")
        return json_object(body, bytes_max=size)


@method_decorator(conditional_page, name="dispatch")
@method_decorator(cache_control(private=True, no_cache=True), name="dispatch")
class RestView(JsonView):
    """A REST view whose responses carry an ETag; an unchanged one is answered with 304.

    What a person's browser is shown is for its page alone and stored nowhere; files are.

    A write with `If-Match` is refused if a GET of the same path now has a different ETag (RFC 9110
    §13.1.1).
    """

    parser_classes: Sequence[type[BaseParser]] = (StrictJSONParser,)
    answers_repeats = False
    """Whether a POST handles its `Idempotency-Key` itself, or has no effect."""
    shows_secret = False
    """Whether the answer to a POST has a secret, which is not stored for repeats."""
    repeated: Callable[..., Response] | None = None
    """The answer to a repeated POST if the first one shows what a chat said: what it says now, to
    those who may still read it."""
    _repeatable: RepeatableRequest | None = None
    _is_by_cookie = False

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the caller, the limits, `If-Match` and `Idempotency-Key`, in this order."""
        super().initial(request, *args, **kwargs)
        self._is_by_cookie = request.auth is None
        if "If-Match" in request.headers and request.method not in SAFE_METHODS:
            self._check_condition(request, *args, **kwargs)
        if request.method == "POST" and hasattr(self, "post") and not self.answers_repeats:
            self._repeatable = RepeatableRequest.of(request)
            if self._repeatable is not None and self._repeatable.is_repeated:
                # The handler that this request is dispatched to.
                vars(self)["post"] = partial(self._repeatable.replay, current=self.repeated)

    def _check_condition(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Compare `If-Match` with the ETag of this path; raises Problem precondition_failed."""
        read = getattr(self, "get", None)
        if read is None:
            if request.method in {"PATCH", "PUT", "DELETE"}:
                raise Problem("precondition_failed", "This path has no ETag: leave out If-Match.")
            return
        http = request._request  # noqa: SLF001 its query is that of the write
        query, http.GET = http.GET, QueryDict()
        try:
            current = read(request, *args, **kwargs)
        finally:
            http.GET = query
        check_match(request, current)

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Answer a request; HEAD and what is not stored get the ETag, which Django leaves out."""
        response = super().dispatch(request, *args, **kwargs)
        if not isinstance(response, Response):
            return response
        if self._is_by_cookie:
            patch_cache_control(response, no_store=True)
        if request.method == "HEAD" or (
            request.method == "GET" and self._is_by_cookie and response.status_code == HTTPStatus.OK
        ):
            response.add_post_render_callback(set_response_etag)
        return response

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Store the answer of a request that may be repeated."""
        done = super().finalize_response(request, response, *args, **kwargs)
        if self._repeatable is not None:
            self._repeatable.answered(done, shows_secret=self.shows_secret)
        return done


def check_match(request: Request, current: HttpResponseBase) -> None:
    """Raise Problem precondition_failed if `If-Match` lacks the ETag of the GET response."""
    if_match = request.headers["If-Match"].strip()
    if if_match != "*" and not parse_etags(if_match):
        message = 'Send an `ETag` of this path, with its quotation marks: "…".'
        raise Problem("invalid", message, errors=[{"header": "If-Match", "detail": message}])
    if not isinstance(current, Response):
        return
    body = JSONRenderer().render(current.data, JSONRenderer.media_type, {})
    etag = quote_etag(md5(body, usedforsecurity=False).hexdigest())
    if if_match != "*" and etag not in parse_etags(if_match):
        raise Problem("precondition_failed", "It has changed since you read it. Read it again.")


class UnknownPathView(RestView):
    """Every path below /api without a view."""

    authentication_classes = ()
    permission_classes = (AllowAny,)
    schema = None

    def check_permissions(self, request: Request) -> None:  # noqa: ARG002 required by the interface
        """Refuse every method with a problem."""
        raise UnknownPath


def visible_chats(request: Request) -> QuerySet[Chat]:
    """Return those of the caller's chats that the credential may see."""
    chats, only = chats_of(caller(request).pk), rights_of(request).chats
    return chats if only is None else chats.filter(pk__in=only)


def chats_for(request: Request, chat_id: str) -> QuerySet[Chat]:
    """Return the chat as a queryset, which is empty for strangers."""
    return visible_chats(request).filter(pk=chat_id)


def check_member(request: Request, chat_id: str) -> None:
    """Raise Http404 if the caller is not a member, or the chat does not exist."""
    if not chats_for(request, chat_id).exists():
        raise Http404


def check_opens(request: Request, chat_id: str) -> None:
    """Raise unless the caller is a member, and may read what they are about to open to others.

    Otherwise a key without `chats:read` could read the chat through a link or an accomplice.
    """
    rights_of(request).check("chats:read")
    check_member(request, chat_id)
