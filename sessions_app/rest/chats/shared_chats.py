"""`/shared/{secret}`: a chat as a read-only page for anyone with the link (docs/links.md).

The pages need neither scripts nor sign-in. Invalid secrets and revoked ones get the same reply.
Signed-in people are rate limited by address as well.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

import msgspec
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from chat_app.contents.reading_rights import ContentNotFound
from chat_app.links.share_links import count_opening, share_link_of
from chat_app.links.shared_pages import shared_content, shared_page
from chat_app.rest.contents.contents import blob_response
from chat_app.rest.paging import SEQ_MAX
from sessions_app.access import rates, throttles
from sessions_app.rest.chats.shared_documents import shared_document

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable

    from django.http import HttpRequest, StreamingHttpResponse
    from django.http.response import HttpResponseBase

POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src 'self'; media-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'"
)
# Keep the page out of search engines and caches, and its address out of referrers.
_HEADERS: Final = {
    "X-Robots-Tag": "noindex, nofollow, noarchive",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "private, no-store",
}


def _for_strangers(kind: str) -> Callable[..., Callable[..., HttpResponseBase]]:
    """Count a request against its address, and set the headers of every reply."""

    def decorate(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
        @wraps(view)
        def answered(request: HttpRequest, **path: object) -> HttpResponseBase:
            quota = throttles.count(request, kind, None)
            response = view(request, **path) if quota.allowed else _too_often(request, quota)
            for name, value in _HEADERS.items():
                response[name] = value
            response.headers.setdefault("Content-Security-Policy", POLICY)
            return response

        return answered

    return decorate


@require_safe
@_for_strangers("shared pages")
def shared_chat(request: HttpRequest, secret: str) -> HttpResponse:
    """Show a page of messages; `after` and `before` are positions to continue from.

    With `format=json` it is signed JSON.
    """
    link = share_link_of(secret)
    if link is None:
        return _not_found(request)
    before, after = (_place(request.GET.get(name, "")) for name in ("before", "after"))
    address = rates.visitors(str(request.META.get("REMOTE_ADDR", "")))
    page = shared_page(link, before=before, after=after, asker=address)
    if request.method == "GET" and before is after is None:
        count_opening(link)
    title = link.title or link.chat.title or gettext("A shared chat")
    if request.GET.get("format") == "json":
        body = msgspec.json.encode(shared_document(title, page))
        return HttpResponse(body, content_type="application/json")
    context = {
        "title": title,
        "shared_by": link.created_by.get_username() if link.created_by else "",
        "grows": link.until_seq is None,
        "made_at": link.created_at,
        "expires_at": link.expires_at,
        "page": page,
        "path": request.path,
        "signed_path": _signed_path(request.path, before=before, after=after),
    }
    return render(request, "sessions_app/shared_chat.html", context)


@require_safe
@_for_strangers("shared files")
def shared_file(
    request: HttpRequest, content_id: uuid.UUID
) -> HttpResponse | StreamingHttpResponse:
    """Return a content of a message shown by a link, using the signed URL from its page."""
    link, place = (_place(request.GET.get(name, "")) for name in ("link", "at"))
    signature = request.GET.get("signature", "")
    try:
        content = shared_content(
            content_id, link_id=link or 0, place=place or 0, signature=signature
        )
    except ContentNotFound:
        return _not_found(request)
    return blob_response(content, request)


def _not_found(request: HttpRequest) -> HttpResponse:
    return render(request, "sessions_app/shared_nothing.html", status=404)


def _too_often(request: HttpRequest, quota: rates.Quota) -> HttpResponse:
    context = {"seconds": quota.retry_after}
    refused = render(request, "sessions_app/shared_too_often.html", context, status=429)
    refused["Retry-After"] = str(quota.retry_after)
    return refused


def _signed_path(path: str, *, before: int | None, after: int | None) -> str:
    """Return the address of the same page as signed JSON."""
    places = {"before": before} if before is not None else {"after": after}
    query = {name: place for name, place in places.items() if place is not None}
    return f"{path}?{urlencode({**query, 'format': 'json'})}"


def _place(text: str) -> int | None:
    """Parse a position from the query; None if it is missing or invalid."""
    if not (text.isascii() and text.isdecimal() and len(text) < len(str(SEQ_MAX))):
        return None
    return int(text)
