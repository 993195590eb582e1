"""The admin's timeline pages for chats and responses, their tails, and raw entries."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.http import urlencode

from audit_app.admin.records import hidden_text, record_request
from audit_app.record import AuditAction
from chat_app.admin.history_pages import pretty
from chat_app.log.log_pages import chat_facts, entry_at
from chat_app.rest.paging import SEQ_MAX
from sessions_app.admin.timeline.item import TRACKS
from sessions_app.admin.timeline.picture import picture_of
from sessions_app.admin.timeline.reading import Chosen, Sight, chat_page, response_page
from sessions_app.admin.timeline.tail import tail_of
from sessions_app.models import Response

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from django.contrib.admin import AdminSite
    from django.contrib.auth.models import AnonymousUser, User
    from django.http import HttpRequest, HttpResponse
    from django.http.response import HttpResponseBase
    from django.urls import URLPattern

    from sessions_app.admin.timeline.item import Item
    from sessions_app.admin.timeline.reading import TimelinePage

CONTENT: Final = "chat_app.view_content"
RIGHTS: Final[dict[str, str]] = {
    "messages": "chat_app.view_message",
    "responses": "sessions_app.view_response",
    "models": "sessions_app.view_response",
    "tools": "sessions_app.view_toolcall",
    "money": "sessions_app.view_paymentrequest",
    "chat": "chat_app.view_chatevent",
}
"""The right required to see each track."""
LEDGER: Final = tuple(f"payments_app.view_{model}" for model in ("transfer", "account", "hold"))
"""The right required to see ledger rows on the money track."""

HIDDEN: Final = "texts of messages, arguments and results of tools, and the events as sent (Raw)"


@dataclass(frozen=True, kw_only=True)
class _Selection:
    """A request's selection, limited to what the person may see."""

    chosen: Chosen
    sight: Sight
    may_read: bool


class TimelinePages:
    """The timeline views of an admin site."""

    def __init__(self, site: AdminSite) -> None:
        self._site = site

    def urls(self) -> list[URLPattern]:
        """Return the pages' URLs, which must precede those of the change form."""
        chat, response = "timeline/chat/<str:chat_id>/", "<str:response_id>/timeline/"
        pages: list[tuple[str, Any, str]] = [
            (chat, self.chat, "sessions_app_chat_timeline"),
            (f"{chat}tail/", self.tail_of_chat, "sessions_app_chat_timeline_tail"),
            (f"{chat}entry/<int:seq>/", self.entry, "sessions_app_chat_entry"),
            (response, self.response, "sessions_app_response_timeline"),
            (f"{response}tail/", self.tail_of_response, "sessions_app_response_timeline_tail"),
        ]
        return [path(route, self._site.admin_view(view), name=name) for route, view, name in pages]

    def chat(self, request: HttpRequest, chat_id: str) -> HttpResponse:
        """Show a page of a chat's timeline.

        Raises PermissionDenied without the rights to view chats and responses.
        """
        page, selection, _ = _page_of_chat(request, chat_id)
        address = reverse("admin:sessions_app_chat_timeline_tail", args=[chat_id])
        return self._rendered(request, page, selection, address=address)

    def tail_of_chat(self, request: HttpRequest, chat_id: str) -> HttpResponseBase:
        """Stream the live part of a chat's timeline; raises like `chat`."""
        return tail_of(request, _LivePart(lambda again: _page_of_chat(again, chat_id, live=True)))

    def response(self, request: HttpRequest, response_id: str) -> HttpResponse:
        """Show the timeline of a response.

        Raises PermissionDenied without the right to view responses.
        """
        page, selection, response = _page_of_response(request, response_id)
        address = reverse("admin:sessions_app_response_timeline_tail", args=[response_id])
        return self._rendered(request, page, selection, address=address, response=response)

    def tail_of_response(self, request: HttpRequest, response_id: str) -> HttpResponseBase:
        """Stream the live part of a response's timeline; raises like `response`."""
        return tail_of(request, _LivePart(lambda again: _page_of_response(again, response_id)))

    def entry(self, request: HttpRequest, chat_id: str, seq: int) -> HttpResponse:
        """Show a log entry in its wire format; requires the right to view contents."""
        if not request.user.has_perms([RIGHTS["chat"], CONTENT]):
            raise PermissionDenied
        chat = chat_facts(unquote(chat_id))
        entry = None if chat is None else entry_at(chat.id, min(seq, SEQ_MAX))
        if chat is None or entry is None:
            raise Http404
        record_request(
            request, AuditAction.CONTENT_READ, ("chat_app.chat", chat.id), detail=f"Entry {seq}."
        )
        context = {
            **self._site.each_context(request),
            "title": f"Entry {seq}: {entry.type}",
            "entry": entry,
            "chat": chat,
            "data": pretty({**entry.payload, "seq": entry.seq}),
        }
        return TemplateResponse(request, "admin/sessions_app/timeline/entry.html", context)

    def _rendered(
        self,
        request: HttpRequest,
        page: TimelinePage,
        selection: _Selection,
        *,
        address: str,
        response: Response | None = None,
    ) -> HttpResponse:
        items = _linked(page.items, request.user)
        if selection.sight.texts:
            _record_reading(request, page, response, "The timeline.")
        query = _query(selection)
        context = {
            **self._site.each_context(request),
            **_facts(request, page, items),
            "title": f"Timeline of {page.title}",
            "page": page,
            "rows": [(item, version_of(item)) for item in items],
            "response": response,
            "asked": selection,
            "tracks": [
                (key, label, key in selection.chosen.tracks)
                for key, label in TRACKS.items()
                if key in selection.sight.tracks
            ],
            "hidden": "" if selection.may_read else hidden_text(HIDDEN),
            "live": f"{address}?{urlencode(query)}" if page.is_newest else "",
            "older": urlencode([*query, ("before", page.older)]) if page.older else "",
            "newest": urlencode(query),
        }
        return TemplateResponse(request, "admin/sessions_app/timeline/timeline.html", context)


class _LivePart:
    """The live part of a timeline, reread on each round.

    The first round that shows texts is recorded.
    """

    def __init__(
        self, read: Callable[[HttpRequest], tuple[TimelinePage, _Selection, Response | None]]
    ) -> None:
        self._read = read
        self._is_recorded = False

    def __call__(self, request: HttpRequest) -> dict[str, Any]:
        """Return the part as the request's person may see it now."""
        page, selection, response = self._read(request)
        if selection.sight.texts and not self._is_recorded:
            _record_reading(request, page, response, "The live timeline.")
            self._is_recorded = True
        return _part(request, page)


def _record_reading(
    request: HttpRequest, page: TimelinePage, response: Response | None, detail: str
) -> None:
    """Record in the audit that a person read the texts of a timeline."""
    subject = ("chat_app.chat", page.chat_id)
    if response is not None:
        subject = ("sessions_app.response", response.pk)
    record_request(request, AuditAction.TRANSCRIPT_READ, subject, detail=detail)


def version_of(item: Item) -> str:
    """Return a digest that changes with an item's displayed content."""
    return f"{zlib.crc32(repr(item).encode()):x}"


def _page_of_chat(
    request: HttpRequest, chat_id: str, *, live: bool = False
) -> tuple[TimelinePage, _Selection, None]:
    """Return the chosen page of a chat, or the newest if it is followed `live`."""
    selection = _selection(request, "chat_app.view_chat", "sessions_app.view_response")
    chosen = replace(selection.chosen, before=SEQ_MAX) if live else selection.chosen
    page = chat_page(unquote(chat_id), chosen, selection.sight)
    if page is None:
        raise Http404
    return page, selection, None


def _page_of_response(
    request: HttpRequest, response_id: str
) -> tuple[TimelinePage, _Selection, Response]:
    selection = _selection(request, "sessions_app.view_response")
    rows = Response.objects.select_related("agent", "message")
    response = rows.filter(pk=unquote(response_id)).first()
    if response is None:
        raise Http404
    return response_page(response, selection.chosen, selection.sight), selection, response


def _facts(request: HttpRequest, page: TimelinePage, items: Sequence[Item]) -> dict[str, Any]:
    return {
        "picture": picture_of(items),
        "chat_id": page.chat_id,
        "raw": request.user.has_perms([RIGHTS["chat"], CONTENT]),
    }


def _part(request: HttpRequest, page: TimelinePage) -> dict[str, Any]:
    """Return the live part of a page: its items as HTML, and its picture."""
    items = _linked(page.items, request.user)
    parts, folder = _facts(request, page, items), "admin/sessions_app/timeline"
    return {
        "items": [
            {
                "key": item.key,
                "version": version_of(item),
                "html": render_to_string(
                    f"{folder}/item.html", {**parts, "item": item, "version": version_of(item)}
                ),
            }
            for item in items
        ],
        "picture": render_to_string(f"{folder}/picture.html", parts),
        "is_running": page.is_running,
    }


def _selection(request: HttpRequest, *rights: str) -> _Selection:
    user = request.user
    if not user.has_perms(rights):
        raise PermissionDenied
    may_read = user.has_perm(CONTENT)
    sight = Sight(
        tracks=frozenset(track for track, right in RIGHTS.items() if user.has_perm(right)),
        ledger=user.has_perms(LEDGER),
        texts=may_read and request.GET.get("texts") == "1",
    )
    named = frozenset(request.GET.getlist("track")) & frozenset(TRACKS)
    chosen = Chosen(
        tracks=named or frozenset(TRACKS),
        who=request.GET.get("who", "")[:60],
        before=_place(request.GET),
    )
    return _Selection(chosen=chosen, sight=sight, may_read=may_read)


def _place(values: Any) -> int:
    """Return the `seq` before which a page ends: `before`, or half a page after `at`."""
    for name, more in (("before", 0), ("at", 50)):
        text = values.get(name, "")
        if text.isascii() and text.isdecimal():
            return min(int(text[:20]) + more, SEQ_MAX)
    return SEQ_MAX


def _query(selection: _Selection) -> list[tuple[str, Any]]:
    """Return the selection of a page as query parameters."""
    chosen = selection.chosen
    query: list[tuple[str, Any]] = []
    if chosen.tracks != frozenset(TRACKS):
        query += [("track", track) for track in TRACKS if track in chosen.tracks]
    if chosen.who:
        query.append(("who", chosen.who))
    if selection.sight.texts:
        query.append(("texts", "1"))
    return query


def _linked(items: Sequence[Item], user: User | AnonymousUser) -> list[Item]:
    """Return the items with only those links whose pages the person may open."""
    return [
        replace(item, links=[link for link in item.links if user.has_perm(link.needs)])
        for item in items
    ]
