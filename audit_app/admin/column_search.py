"""A search of an admin list by indexed columns, which reads few rows of a large table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.core.exceptions import ValidationError
from django.db.models import BooleanField, Func, Q

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
EXACT: Final = "__exact"
BEGINS: Final = "__startswith"
"""The look-ups of `search_fields` that look at all rows; other fields are searched for a part."""
_LAST: Final = "\N{LATIN SMALL LETTER Z}" * 4
FILTERED_ROWS: Final = 500
"""How many rows a filter or a search without an index looks at."""


class ColumnSearch(_Admin):
    """Searches each column by a separate query.

    One query over several columns, or over other tables, would use no index.
    """

    ordering: ClassVar[Any]
    filled_only: ClassVar[tuple[str, ...]] = ()
    """Columns whose index leaves out empty values."""

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Return the rows that match any of `search_fields`, at most COUNTED_ROWS for each.

        They are the first in list order among the rows that pass the page's filters.
        """
        if not search_term:
            return queryset, False
        keys: set[Any] = set()
        for field in self.get_search_fields(request):
            try:
                keys.update(self._first_keys(self.matching(queryset, field, search_term)))
            except (ValidationError, ValueError):
                continue  # a column of numbers or UUIDs has no such value
        return queryset.filter(pk__in=keys), False

    def matching(self, rows: QuerySet[Any], field: str, text: str) -> QuerySet[Any]:
        """Return the rows whose column matches; substrings are searched only in the newest rows."""
        if field.endswith(BEGINS):
            return rows.filter(begins(field.removesuffix(BEGINS), text))
        if not field.endswith(EXACT):
            newest = newest_keys(rows.model, self.ordering)
            return rows.filter(pk__in=newest, **{f"{field}__icontains": text})
        rows = rows.filter(**{field: text})
        column = field.removesuffix(EXACT)
        return rows.filter(IsFilled(column)) if column in self.filled_only else rows

    def _first_keys(self, rows: QuerySet[Any]) -> list[Any]:
        """Return the keys of the first COUNTED_ROWS of a list.

        They are sorted only if there are more: to find few rows in order, a database may read the
        whole table in that order.
        """
        keys = rows.order_by().values_list("pk", flat=True)
        first_keys = list(keys[: COUNTED_ROWS + 1])
        if len(first_keys) <= COUNTED_ROWS:
            return first_keys
        return list(keys.order_by(*self.ordering)[:COUNTED_ROWS])


class IsFilled(Func):
    """The condition of an index that leaves out empty texts, spelled as the index spells it.

    SQLite uses such an index only for a query that has its condition without a parameter.
    """

    template = "NOT (%(expressions)s = '')"
    output_field = BooleanField()


def begins(column: str, text: str) -> Q:
    """Return the condition that a column begins with a text.

    A range, because LIKE does not use a text index on either database.
    """
    return Q(**{f"{column}__gte": text, f"{column}__lt": text + _LAST})


def newest_keys(model: Any, ordering: Sequence[str]) -> list[Any]:
    """Return the keys of a list's first rows, as values: a subquery would be a full scan."""
    return list(model.objects.order_by(*ordering).values_list("pk", flat=True)[:FILTERED_ROWS])
