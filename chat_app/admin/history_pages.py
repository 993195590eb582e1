"""Admin pages of rows that record what happened: read-only, newest first.

A list costs the same number of queries whatever it shows, and a search uses only indexed columns.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import admin
from django.core.exceptions import ValidationError
from django.utils.html import format_html

from audit_app.admin.records import COUNTED_ROWS, RecordAdmin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.utils.safestring import SafeString


FILTERED_ROWS: Final = 500
"""How many rows a filter or a search without an index looks at."""


class HistoryAdmin(RecordAdmin):
    """A list of immutable rows, searched by indexed columns.

    Each column is searched by a separate query: one query over several columns, or over other
    tables, would use no index.
    """

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Return the rows that match any of `search_fields`, at most COUNTED_ROWS for each.

        They are the first in list order among the rows that pass the page's filters.
        """
        if not search_term:
            return queryset, False
        found: set[Any] = set()
        for field in self.get_search_fields(request):
            rows = queryset
            lookup = field
            if not field.endswith("__exact"):
                # Substrings are searched only in the newest rows.
                rows = rows.filter(pk__in=newest_keys(queryset.model, self.ordering))
                lookup = f"{field}__icontains"
            try:
                found.update(self._first_keys(rows.filter(**{lookup: search_term})))
            except (ValidationError, ValueError):
                continue  # a column of numbers or UUIDs has no such value
        return queryset.filter(pk__in=found), False

    def _first_keys(self, rows: QuerySet[Any]) -> list[Any]:
        """Return the keys of the first COUNTED_ROWS of a list.

        They are sorted only if there are more: to find few rows in order, a database may read the
        whole table in that order.
        """
        keys = rows.order_by().values_list("pk", flat=True)
        found = list(keys[: COUNTED_ROWS + 1])
        if len(found) <= COUNTED_ROWS:
            return found
        return list(keys.order_by(*self.ordering)[:COUNTED_ROWS])


def newest_keys(model: Any, ordering: Sequence[str]) -> list[Any]:
    """Return the keys of a list's first rows, as values: a subquery would be a full scan."""
    return list(model.objects.order_by(*ordering).values_list("pk", flat=True)[:FILTERED_ROWS])


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
