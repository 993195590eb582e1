"""Filters that never cost a list a scan: date ranges."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin, messages
from django.contrib.admin.views.main import PAGE_VAR

from audit_app.admin.windows import BEFORE

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet
    from django.http import HttpRequest


DAY: Final = timedelta(days=1)
MINUTE: Final = timedelta(minutes=1)


class InvalidRange(Exception):
    """A filter's dates or times cannot be read; the message says which."""


class DateRangeFilter(admin.FieldListFilter):
    """Rows between two days, inclusive, in UTC: `(column, DateRangeFilter)`.

    Each day may have a time, to the minute, also inclusive. The column needs an index in the order
    of its list. Without a valid range, no rows are listed, and the page says why.
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
        self.names = self.parameters_of(field_path)
        super().__init__(field, request, params, model, model_admin, field_path)
        self.first, self.first_time, self.last, self.last_time = map(self._value, self.names)
        self.error = ""
        self.start: datetime | None = None
        self.end: datetime | None = None
        try:
            self.start = _moment(self.first, self.first_time)
            last = _moment(self.last, self.last_time)
        except InvalidRange as error:
            self.error = str(error)
        else:
            self.end = last and last + (MINUTE if self.last_time else DAY)
            if self.start and self.end and self.end <= self.start:
                self.error = "The range ends before it begins."
        # The form also sends the choices of the other filters.
        self.others = [
            (name, value)
            for name, value in request.GET.items()
            if name not in {*self.names, PAGE_VAR, BEFORE}
        ]

    @staticmethod
    def parameters_of(column: str) -> tuple[str, str, str, str]:
        """Return the parameters of the range of a column: a day and a time for each end."""
        start, end = f"{column}_from", f"{column}_until"
        return start, f"{start}_time", end, f"{end}_time"

    def _value(self, name: str) -> str:
        values: Any = self.used_parameters.get(name, "")
        return str(values[-1] if isinstance(values, list) else values)

    def expected_parameters(self) -> list[str | None]:
        """Return the parameters."""
        return list(self.names)

    def choices(self, changelist: Any) -> Any:
        """Return the template's context: the fields, and the link back to all rows."""
        everything = changelist.get_query_string(remove=self.names)
        yield {
            "selected": bool(self.first or self.last),
            "query_string": everything,
            "display": "All",
        }

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows within the range; none, with a message, if it cannot be read."""
        if self.error:
            messages.error(request, f"{self.error} No rows are listed.")
            return queryset.none()
        if self.start is not None:
            queryset = queryset.filter(**{f"{self.field_path}__gte": self.start})
        return self.until(queryset)

    def until(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows up to the end of the range."""
        if self.end is not None:
            queryset = queryset.filter(**{f"{self.field_path}__lt": self.end})
        return queryset


def _moment(day: str, time: str) -> datetime | None:
    """Return the start of a day, or a time in it; raises InvalidRange."""
    if not day and time:
        raise InvalidRange(f"The time {time[:20]} has no date.")
    if not day:
        return None
    try:
        moment = datetime.strptime(f"{day} {time or '00:00'}", "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
        _ = moment + DAY
    except (ValueError, OverflowError):
        text = f"{day[:20]} {time[:20]}".strip()
        raise InvalidRange(f"“{text}” is not a date such as 2026-01-31, or its time.") from None
    return moment
