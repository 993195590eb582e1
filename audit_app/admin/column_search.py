"""A search of an admin list by indexed columns, which reads few rows of a large table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.core.exceptions import ValidationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.contrib import admin
    from django.db.models import QuerySet
    from django.http import HttpRequest

    _Admin = admin.ModelAdmin[Any]
else:
    _Admin = object

COUNTED_ROWS: Final = 10_000
"""How many rows a list counts, and how many a search finds in one column."""
INDEXED: Final = ("__exact", "__startswith")
"""The look-ups of `search_fields` that look at all rows; other fields are searched for a part."""
FILTERED_ROWS: Final = 500
"""How many rows a filter or a search without an index looks at."""


class ColumnSearch(_Admin):
    """Searches each column by a separate query.

    One query over several columns, or over other tables, would use no index.
    """

    ordering: ClassVar[Any]

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
            if not field.endswith(INDEXED):
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
