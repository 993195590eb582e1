"""A single search for rows by id or name, and for messages by their words.

Admin pages list the columns that identify their rows in `find_by`. Each is looked up through its
index, exactly or, for ids, by the prefix that lists display. Messages are searched only for people
who may view contents, and the audit log records it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib.admin.utils import quote
from django.core.exceptions import ValidationError
from django.http import HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from audit_app.admin.column_search import begins
from audit_app.admin.records import record_request, sees_content
from audit_app.record import AuditAction
from chat_app.search.everywhere import find_messages

if TYPE_CHECKING:
    from django.contrib.admin import AdminSite
    from django.http import HttpRequest, HttpResponse

ROWS: Final = 5
"""The most rows displayed per list."""
MESSAGES: Final = 20
LEAST_CHARS: Final = 2
MOST_CHARS: Final = 200
LEAST_OF_AN_ID: Final = 8


def find_view(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """Redirect if a text identifies a single row; otherwise show matching rows or messages."""
    text = request.GET.get("q", "").strip()[:MOST_CHARS]
    rows = _rows(request, site, text) if len(text) >= LEAST_CHARS else []
    if len(rows) == 1:
        return HttpResponseRedirect(rows[0]["url"])
    messages: list[dict[str, Any]] = []
    if not rows and len(text) > LEAST_CHARS and _may_search(request):
        record_request(request, AuditAction.CONTENT_SEARCHED, None, detail=text)
        messages = [
            {
                "url": reverse("admin:chat_app_message_change", args=[quote(message.pk)]),
                "who": message.name or message.role,
                "when": message.created_at,
                "chat": message.chat,
                "text": message.content[:200],
            }
            for message in find_messages(text, limit=MESSAGES)
        ]
    context = {
        **site.each_context(request),
        "title": "Search",
        "text": text,
        "rows": rows,
        "found_messages": messages,
        "may_search": _may_search(request),
    }
    return TemplateResponse(request, "admin/home/find.html", context)


def _may_search(request: HttpRequest) -> bool:
    return sees_content(request) and request.user.has_perm("chat_app.view_message")


def _rows(request: HttpRequest, site: AdminSite, text: str) -> list[dict[str, str]]:
    """Return the rows that a text identifies, without duplicates: {kind, label, url}."""
    found: list[dict[str, str]] = []
    for model, page in site._registry.items():  # noqa: SLF001 the site has no public list of its pages
        lookups = getattr(page, "find_by", ())
        if not lookups or not page.has_view_permission(request):
            continue
        seen: dict[Any, Any] = {}
        for lookup in lookups:
            for row in _matching(model, lookup, text):
                seen[row.pk] = row
        options = model._meta  # noqa: SLF001 documented API of models
        name = f"admin:{options.app_label}_{options.model_name}_change"
        found += [
            {
                "kind": str(options.verbose_name),
                "label": str(row),
                "url": reverse(name, args=[quote(pk)]),
            }
            for pk, row in seen.items()
        ]
    return found


def _matching(model: Any, lookup: str, text: str) -> list[Any]:
    rows = model._default_manager.order_by()  # noqa: SLF001 documented API of models
    column, _, kind = lookup.partition("__")
    try:
        if kind == "begins":
            if len(text) < LEAST_OF_AN_ID:
                return []
            rows = rows.filter(begins(column, text))
        else:
            rows = rows.filter(**{lookup: text})
        return list(rows[:ROWS])
    except (ValidationError, ValueError):
        return []  # a column of numbers or UUIDs cannot have this value
