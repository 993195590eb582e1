"""Columns and links of lists and pages: short ids, links to rows of any app, state badges.

An id is cut to its beginning, which the admin's search finds; its title has all of it.
"""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.dateformat import format as date_text
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.timesince import timesince

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from django.http import HttpRequest
    from django.utils.safestring import SafeString

ID_CHARS: Final = 13
"""The length of a short id: its kind and eight digits, such as `resp_1a2b3c4d`."""
TIMED_ID_CHARS: Final = 17
"""The same for a ledger id, which begins with its time, up to the microsecond."""
NAME_CHARS: Final = 40


def short(text: str, chars: int = ID_CHARS) -> str:
    """Return a text cut to `chars` with an ellipsis if it is longer."""
    return text if len(text) <= chars + 1 else f"{text[:chars]}…"


def row_link(kind: str, pk: Any, label: str | None = None) -> SafeString | str:
    """Return a link to a row: `kind` is a label such as `chat_app.chat`; "-" for no row.

    Without a label, the short id is shown. A kind that has no page is shown as text.
    """
    if pk in {None, ""}:
        return "-"
    text = short(str(pk)) if label is None else short(label, NAME_CHARS)
    try:
        url = reverse(f"admin:{kind.replace('.', '_')}_change", args=[quote(pk)])
    except NoReverseMatch:
        return text
    return format_html('<a href="{}" title="{}">{}</a>', url, label or pk, text)


def list_link(kind: str, query: str, label: str) -> SafeString:
    """Return a link to a list filtered by `query`, such as `q=resp_1`."""
    url = reverse(f"admin:{kind.replace('.', '_')}_changelist")
    return format_html('<a href="{}?{}">{}</a>', url, query, label)


def list_buttons(
    request: HttpRequest, *lists: tuple[str, str, dict[str, str]]
) -> list[dict[str, str]]:
    """Return buttons to filtered lists that a person may see: (kind, label, query) each."""
    buttons = []
    for kind, label, query in lists:
        app, _, model = kind.partition(".")
        if request.user.has_perm(f"{app}.view_{model}"):
            url = reverse(f"admin:{app}_{model}_changelist")
            buttons.append({"url": f"{url}?{urlencode(query)}", "label": label})
    return buttons


def audit_button(request: HttpRequest, kind: str, row_id: Any) -> list[dict[str, str]]:
    """Return the button to the audit records of a row, for people who may read them."""
    query = {"q": str(row_id), "kind": kind}
    return list_buttons(request, ("audit_app.auditrecord", "Audit", query))


def short_id(
    attribute: str = "pk", description: str = "id", *, chars: int = ID_CHARS
) -> Callable[[Any], SafeString]:
    """Return a column with the short id of a row; the first column of a list links to the row."""

    @admin.display(description=description)
    def column(row: Any) -> SafeString:
        value = str(getattr(row, attribute))
        return format_html('<span class="id" title="{}">{}</span>', value, short(value, chars))

    return column


def linked(relation: str, description: str | None = None) -> Callable[[Any], SafeString | str]:
    """Return a column with a link to a related row; list it in `list_select_related`."""

    @admin.display(description=description or relation)
    def column(row: Any) -> SafeString | str:
        other = getattr(row, relation)
        if other is None:
            return "-"
        label = None if str(other) == str(other.pk) else str(other)
        return row_link(other._meta.label_lower, other.pk, label)  # noqa: SLF001 documented API

    return column


def id_link(attribute: str, kind: str, description: str) -> Callable[[Any], SafeString | str]:
    """Return a column or field with a link to a row of which only the id is stored."""

    @admin.display(description=description)
    def column(row: Any) -> SafeString | str:
        return row_link(kind, getattr(row, attribute))

    return column


def moment_text(at: datetime) -> SafeString:
    """Return a time in UTC, as the log has it, with the time since or until then as its title."""
    now = timezone.now()
    distance = f"{timesince(at, now)} ago" if at <= now else f"in {timesince(now, at)}"
    return format_html(
        '<time datetime="{}" title="{}">{} UTC</time>',
        at.astimezone(UTC).isoformat(),
        distance,
        date_text(at.astimezone(UTC), "Y-m-d H:i:s"),
    )


def moment(attribute: str, description: str | None = None) -> Callable[[Any], SafeString | str]:
    """Return a column or field with a time in UTC."""

    @admin.display(description=description or attribute.replace("_", " "))
    def column(row: Any) -> SafeString | str:
        at = getattr(row, attribute)
        return "-" if at is None else moment_text(at)

    column.__name__ = attribute
    return column


def badge(text: str, tone: str) -> SafeString:
    """Return a state as a word with a tone: `good`, `bad`, `busy` or `quiet`."""
    return format_html('<span class="badge {}">{}</span>', tone, text)
