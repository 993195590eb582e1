"""Filters that never cost a list a scan: date ranges."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.views.main import PAGE_VAR

from audit_app.admin.windows import BEFORE

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet
    from django.http import HttpRequest


def _day(text: str | None) -> datetime | None:
    try:
        return datetime.strptime(text or "", "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        return None


class DateRangeFilter(admin.FieldListFilter):
    """Rows between two days, inclusive, in UTC: `(column, DateRangeFilter)`.

    The column needs an index in the order of its list. Invalid dates are ignored.
    """

    template = "admin/date_range_filter.html"

    def __init__(
        self,
        field: Any,
        request: HttpRequest,
        params: dict[str, Any],
        model: type[Model],
        model_admin: admin.ModelAdmin[Any],
        field_path: str,
    ) -> None:
        self.names = (f"{field_path}_from", f"{field_path}_until")
        super().__init__(field, request, params, model, model_admin, field_path)
        self.first, self.last = (self._given(name) for name in self.names)
        # The form also sends the choices of the other filters.
        self.others = [
            (name, value)
            for name, value in request.GET.items()
            if name not in {*self.names, PAGE_VAR, BEFORE}
        ]

    def _given(self, name: str) -> str:
        values: Any = self.used_parameters.get(name, "")
        return str(values[-1] if isinstance(values, list) else values)

    def expected_parameters(self) -> list[str | None]:
        """Return the two parameters."""
        return list(self.names)

    def choices(self, changelist: Any) -> Any:
        """Return the template's context: the fields, and the link back to all rows."""
        everything = changelist.get_query_string(remove=self.names)
        yield {
            "selected": bool(self.first or self.last),
            "query_string": everything,
            "display": "All",
        }

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002 required by the interface
        """Return the rows within the days."""
        first = _day(self.first)
        if first is not None:
            queryset = queryset.filter(**{f"{self.field_path}__gte": first})
        return self.until(queryset)

    def until(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows up to the last day."""
        last = _day(self.last)
        if last is not None:
            queryset = queryset.filter(**{f"{self.field_path}__lt": last + timedelta(days=1)})
        return queryset
