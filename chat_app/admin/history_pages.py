"""Admin pages of rows that record what happened: read-only, newest first.

A list costs the same number of queries whatever it shows, and a search uses indexed columns only.
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import admin
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.utils.html import format_html

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.utils.safestring import SafeString

    # Django's classes take type arguments in its stubs only.
    _Admin = admin.ModelAdmin[Any]
    _Paginator = Paginator[Any]
else:
    _Admin = admin.ModelAdmin
    _Paginator = Paginator


COUNTED_ROWS: Final = 10_000
FILTERED_ROWS: Final = 500
"""Rows that a filter or a search without an index looks at."""


class CappedPaginator(_Paginator):
    """Pages of the first COUNTED_ROWS rows: a longer list is for filters, not for paging."""

    @cached_property
    def count(self) -> int:
        """Return the number of rows, counted up to the cap."""
        rows: Any = self.object_list
        counted: int = rows.order_by().values("pk")[:COUNTED_ROWS].count()
        return counted


class ReadOnly:
    """No add, no change, no delete, for people of any rights; the rows record what happened."""

    def has_add_permission(self, request: HttpRequest, *_args: Any) -> bool:  # noqa: ARG002 the interface's
        """Refuse to add."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002 the interface's
        """Refuse to change."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002 the interface's
        """Refuse to delete; this also takes `delete_selected` away."""
        return False


class HistoryAdmin(ReadOnly, _Admin):
    """A list of rows that are never changed, the newest first.

    What a search looks for is asked of one column after another: together, and in other tables, no
    index would serve them.
    """

    list_per_page = 50
    show_full_result_count = False
    paginator = CappedPaginator
    ordering: ClassVar[Any] = ("-pk",)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Return the rows that one of `search_fields` finds, at most COUNTED_ROWS of each."""
        if not search_term:
            return queryset, False
        found: set[Any] = set()
        for field in self.get_search_fields(request):
            rows: QuerySet[Any] = queryset.model.objects.order_by()
            lookup = field
            if not field.endswith("__exact"):
                # A part of a text is looked for in the newest rows.
                rows = rows.filter(pk__in=newest_keys(queryset.model, self.ordering))
                lookup = f"{field}__icontains"
            try:
                found.update(
                    rows.filter(**{lookup: search_term}).values_list("pk", flat=True)[:COUNTED_ROWS]
                )
            except (ValidationError, ValueError):
                continue  # a column of numbers or UUIDs has no such value
        return queryset.filter(pk__in=found), False


def newest_keys(model: Any, ordering: Sequence[str]) -> list[Any]:
    """Return the keys of the first rows of a list, as values: a subquery would be a full scan."""
    return list(model.objects.order_by(*ordering).values_list("pk", flat=True)[:FILTERED_ROWS])


def pretty(value: Any) -> SafeString:
    """Return JSON as a person reads it."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return format_html('<pre class="record">{}</pre>', text)


class ValueFilter(admin.SimpleListFilter):
    """A filter by known values among the newest rows.

    Asking the table which values it has would read all of it, and so would a rare one of a column
    that no index orders.
    """

    values: ClassVar[Sequence[str]]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:  # noqa: ARG002 the interface's
        """Return the values."""
        self.ordering = model_admin.ordering
        return [(value, value) for value in self.values]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002 the interface's
        """Return the rows that have the chosen value."""
        value = self.value()
        if not value:
            return queryset
        newest = newest_keys(queryset.model, self.ordering)
        return queryset.filter(pk__in=newest, **{str(self.parameter_name): value})
