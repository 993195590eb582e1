"""A single search for rows by id or name, and for messages, titles and causes by their words.

Admin pages list the columns that identify their rows in `find_by`. Each is looked up through its
index, exactly or, for ids, by the prefix that lists display. Other words are searched among the
newest rows of a page (`rows_with_words`). Messages are searched only for people who may view
contents, and the audit log records it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.contrib.admin.utils import quote
from django.core.exceptions import ValidationError
from django.http import HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.text import capfirst

from audit_app.admin.column_search import FILTERED_ROWS, begins
from audit_app.admin.operations import OperationsAdmin
from audit_app.admin.records import record_request, sees_content
from audit_app.record import AuditAction
from chat_app.search.everywhere import find_messages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.contrib.admin import AdminSite
    from django.http import HttpRequest, HttpResponse

ROWS: Final = 5
"""The most rows displayed per list."""
MESSAGES: Final = 20
MIN_CHARS: Final = 2
MAX_CHARS: Final = 200
MIN_ID_CHARS: Final = 8
EXCERPT_CHARS: Final = 200
NAMES: Final = frozenset({"email", "name", "username"})
"""Columns of `find_by` that hold words, which messages and titles may have, too."""
_SECRET: Final = re.compile(r"(uak_[0-9a-f]{8})_")


@dataclass(frozen=True, kw_only=True)
class FoundRow:
    """A row that matches; `is_id` if the text is its whole id, which has no other meaning."""

    label: str
    url: str
    is_id: bool = False
    excerpt: str = ""
    links: Sequence[Mapping[str, str]] = ()


def find_view(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """Redirect if a text is the id of a single row; otherwise show all that matches, in groups."""
    text = request.GET.get("q", "").strip()[:MAX_CHARS]
    if secret := _SECRET.match(text):
        text = secret[1]
    groups = _groups(request, site, text) if len(text) >= MIN_CHARS else {}
    rows = [row for group in groups.values() for row in group]
    if len(rows) == 1 and rows[0].is_id:
        return HttpResponseRedirect(rows[0].url)
    may_search = sees_content(request) and request.user.has_perm("chat_app.view_message")
    messages: list[dict[str, Any]] = []
    if len(text) > MIN_CHARS and may_search:
        record_request(request, AuditAction.CONTENT_SEARCHED, None, detail=text)
        messages = [
            {
                "url": reverse("admin:chat_app_message_change", args=[quote(message.pk)]),
                "who": message.name or message.role,
                "when": message.created_at,
                "chat": message.chat,
                "text": message.content[:EXCERPT_CHARS],
            }
            for message in find_messages(text, limit=MESSAGES)
        ]
    context = {
        **site.each_context(request),
        "title": "Search",
        "text": text,
        "groups": groups,
        "found_messages": messages,
        "may_search": may_search,
        "newest": FILTERED_ROWS,
    }
    return TemplateResponse(request, "admin/home/find.html", context)


def _groups(request: HttpRequest, site: AdminSite, text: str) -> dict[str, list[FoundRow]]:
    """Return the rows that match a text, by their kinds, without duplicates."""
    groups: dict[str, list[FoundRow]] = {}
    for model, page in site._registry.items():  # noqa: SLF001 the site has no public list of its pages
        lookups = getattr(page, "find_by", ())
        if not lookups or not page.has_view_permission(request):
            continue
        by_pk: dict[Any, FoundRow] = {}
        for lookup in lookups:
            column = lookup.partition("__")[0]
            for row in _matching(model, lookup, text):
                is_name = column in NAMES
                links: Sequence[Mapping[str, str]] = ()
                if is_name and isinstance(page, OperationsAdmin):
                    links = page.row_links(request, row)
                is_id = not is_name and str(getattr(row, column)) == text
                by_pk.setdefault(row.pk, _found_row(row, is_id=is_id, links=links))
        if words := getattr(page, "rows_with_words", None):
            for row, excerpt in words(text, limit=ROWS):
                by_pk.setdefault(row.pk, _found_row(row, excerpt=excerpt[:EXCERPT_CHARS]))
        if by_pk:
            name = str(model._meta.verbose_name_plural)  # noqa: SLF001 documented API of models
            groups.setdefault(capfirst(name), []).extend(by_pk.values())
    return groups


def _found_row(row: Any, **facts: Any) -> FoundRow:
    options = row._meta  # noqa: SLF001 documented API of models
    name = f"admin:{options.app_label}_{options.model_name}_change"
    return FoundRow(label=str(row), url=reverse(name, args=[quote(row.pk)]), **facts)


def _matching(model: Any, lookup: str, text: str) -> list[Any]:
    rows = model._default_manager.order_by()  # noqa: SLF001 documented API of models
    column, _, kind = lookup.partition("__")
    try:
        if kind == "begins":
            if len(text) < MIN_ID_CHARS:
                return []
            rows = rows.filter(begins(column, text))
        else:
            rows = rows.filter(**{lookup: text})
        return list(rows[:ROWS])
    except (ValidationError, ValueError):
        return []  # a column of numbers or UUIDs cannot have this value
