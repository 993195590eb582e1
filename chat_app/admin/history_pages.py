"""Admin pages of rows that record what happened: read-only, newest first.

A list costs the same number of queries whatever it shows, and a search uses only indexed columns.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.utils.html import format_html

from audit_app.admin.column_search import ColumnSearch, newest_keys
from audit_app.admin.records import RecordAdmin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.utils.safestring import SafeString


class HistoryAdmin(ColumnSearch, RecordAdmin):
    """A list of immutable rows, searched by indexed columns."""


def pretty(value: Any) -> SafeString:
    """Return JSON formatted for people."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return format_html('<pre class="record">{}</pre>', text)


class ValueFilter(admin.SimpleListFilter):
    """A filter by known values among the newest rows.

    Querying the table for its values would read all of it, and so would filtering by a rare value
    of a column without an index.
    """

    values: ClassVar[Sequence[str]]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:  # noqa: ARG002 required by the interface
        """Return the values."""
        self.ordering = model_admin.ordering
        return [(value, value) for value in self.values]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002 required by the interface
        """Return the rows that have the chosen value."""
        value = self.value()
        if not value:
            return queryset
        newest = newest_keys(queryset.model, self.ordering)
        return queryset.filter(pk__in=newest, **{str(self.parameter_name): value})
