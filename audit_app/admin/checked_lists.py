"""Admin URLs with values that no row can have: a message instead of a server error.

Django passes the values in an address straight to the database. A value that a column cannot hold,
an impossible date or a regular expression would end in an error page, or in a search that never
ends.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.contrib.admin import SimpleListFilter
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ALL_VAR, PAGE_VAR, ChangeList
from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db import DataError, OperationalError, models, transaction
from django.db.models.constants import LOOKUP_SEP
from django.utils.html import format_html

from audit_app.admin.column_search import COUNTED_ROWS
from audit_app.admin.columns import moment_text
from audit_app.admin.filters import DateRangeFilter
from audit_app.admin.windows import BEFORE, WINDOW, WindowFilter, place_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.contrib.admin import ModelAdmin
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse

    _Admin = ModelAdmin[Any]
else:
    _Admin = object

UNOFFERED: Final = {"iregex", "range", "regex"}
"""A pattern may keep the database busy indefinitely; Django cannot parse a range from a URL."""
WHOLE: Final = {"exact", "in", "isnull"}
"""Look-ups that reveal nothing of a text to who does not know it."""
_TEXTS: Final = (models.CharField, models.TextField, models.JSONField, models.BinaryField)
_ALL_EXAMINED: Final = "The filter examined all rows to the oldest"
_IMPOSSIBLE: Final = (
    IncorrectLookupParameters,
    DataError,
    OperationalError,
    OverflowError,
    ValueError,
)


class CheckedList(ChangeList):
    """A list that reports filters that no row can match, and leads to rows beyond the counted.

    `before` is the place at which it begins, or "" for the newest row. `further` is the query of
    the rows that follow, or "" if there are none. `examined` says how far a filter without an index
    looked, or is "" if every row was found through an index.
    """

    before = ""
    further = ""
    examined = ""

    def get_queryset(self, request: HttpRequest, *args: Any, **kwargs: Any) -> QuerySet[Any]:
        """Return the rows; raises IncorrectLookupParameters for values of the wrong type."""
        try:
            self._check_day()
            self.place = place_in(self.model, self.get_ordering(request, self.root_queryset))
            if self.place is not None and BEFORE in self.params:
                self.before = self.params.pop(BEFORE)
                self.filter_params.pop(BEFORE)
                earlier = self.place.rows_before(self.before)
                self.root_queryset = self.root_queryset.filter(earlier)
            return self._in_window(request, super().get_queryset(request, *args, **kwargs))
        except _IMPOSSIBLE as error:
            raise self._refused(request, error) from error

    def get_results(self, request: HttpRequest) -> None:
        """Count the rows, which makes the database look at every value."""
        try:
            with transaction.atomic():
                super().get_results(request)
                if self.place is not None and not self.further:
                    self._continue_after_last_page()
        except _IMPOSSIBLE as error:
            raise self._refused(request, error) from error

    def get_query_string(self, new_params: Any = None, remove: Any = None) -> str:
        """Return a query of the list; pages stay within its rows, other choices begin anew."""
        if self.before and not {PAGE_VAR, ALL_VAR}.isdisjoint(new_params or {}):
            new_params = {BEFORE: self.before, **new_params}
        return super().get_query_string(new_params, remove)

    def newest_url(self) -> str:
        """Return the query of the same list from its newest row on."""
        return self.get_query_string()

    def _in_window(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Apply the filters without an index to the first WINDOW rows that pass everything else."""
        filters = [
            spec
            for spec in self.filter_specs
            if isinstance(spec, WindowFilter) and spec.needs_window
        ]
        if not filters:
            return rows
        if self.place is not None:
            ends = list(rows.values_list(*self.place.names)[WINDOW - 1 : WINDOW])
            self.examined = f"The filter examined {WINDOW:,} rows" if ends else _ALL_EXAMINED
            for end in ends:
                rows = self._without_first_day(request, rows).filter(self.place.rows_until(end))
                self._set_further(end)
        return rows.filter(*(spec.condition() for spec in filters))

    def _without_first_day(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows without the lower bound of a date range, which a window's end exceeds.

        Of two lower bounds, SQLite would use the first, and read all rows of the range.
        """
        for spec in self.filter_specs:
            if isinstance(spec, DateRangeFilter) and spec.first:
                return spec.until(super().get_queryset(request, spec.expected_parameters()))
        return rows

    def _continue_after_last_page(self) -> None:
        """Lead on from the last page of a list that has more rows than it counts."""
        pages = self.paginator.num_pages
        if self.result_count >= COUNTED_ROWS and self.page_num == pages and self.place is not None:
            *_, last = self.result_list
            self._set_further([getattr(last, name) for name in self.place.names])

    def _set_further(self, end: Any) -> None:
        if self.place is None:
            return
        self.further = self.get_query_string({BEFORE: self.place.text_of(end)})
        if self.examined and isinstance(end[0], datetime):
            self.examined = format_html("{}, back to {}", self.examined, moment_text(end[0]))

    def _check_day(self) -> None:
        """Raise ValueError for a day that the calendar does not have."""
        if not self.date_hierarchy:
            return
        parts = [
            self._last(f"{self.date_hierarchy}{LOOKUP_SEP}{part}")
            for part in ("year", "month", "day")
        ]
        year, month, day = (int(part) if part else None for part in parts)
        date(2000 if year is None else year, month or 1, day or 1)

    def _last(self, name: str) -> str:
        values = self.params.get(name, "")
        return str(values[-1] if isinstance(values, list) else values)

    def _refused(self, request: HttpRequest, error: Exception) -> IncorrectLookupParameters:
        if isinstance(error, OperationalError):
            text = "The database could not read this list. Try again, or use fewer filters."
        else:
            text = "The filter has an impossible value. This list shows all rows."
        messages.error(request, text)
        return IncorrectLookupParameters()


class CheckedAdmin(_Admin):
    """Shows a CheckedList, and finds no row under an impossible id."""

    def get_changelist(self, request: HttpRequest, **_: Any) -> type[ChangeList]:  # noqa: ARG002 required by the interface
        """Return the class of the list."""
        return CheckedList

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[Any], *args: Any, **options: Any
    ) -> HttpResponse | None:
        """Run an action of the list on those of the selected ids that a row can have."""
        post = request.POST.copy()
        chosen = post.getlist(ACTION_CHECKBOX_NAME)
        post.setlist(ACTION_CHECKBOX_NAME, [pk for pk in chosen if _is_key(self.opts.pk, pk)])
        request.POST = post  # type: ignore[assignment] # as Django itself does with a copy
        return super().response_action(request, queryset, *args, **options)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Allow only the parameters of the list's filters, and those of links to it.

        Django allows every field of the row. Without an index, a filter by it would read the whole
        table; by the beginning of a text, or a comparison, a list would tell letter by letter what
        its page withholds.
        """
        if not super().lookup_allowed(lookup, value, request):
            return False
        filters = self.get_list_filter(request)
        if lookup in {*getattr(self, "link_parameters", ()), *_parameters_of(filters)}:
            return True
        fields = [self.date_hierarchy, *(name for name in filters if isinstance(name, str))]
        if not any(f"{lookup}__".startswith(f"{name}__") for name in fields if name):
            return False
        field, names = self._field_of(lookup)
        return names <= WHOLE if isinstance(field, _TEXTS) else not names & UNOFFERED

    def _field_of(self, lookup: str) -> tuple[Any, set[str]]:
        """Return the last field of a look-up, and the names that follow it."""
        options: Any = self.opts
        field: Any = None
        parts = lookup.split(LOOKUP_SEP)
        while parts and options is not None:
            name = options.pk.name if parts[0] == "pk" else parts[0]
            try:
                field = options.get_field(name)
            except FieldDoesNotExist:
                break
            parts.pop(0)
            options = getattr(field.related_model, "_meta", None)
        return field, set(parts)

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        """Return the row of an id, or None."""
        try:
            with transaction.atomic():
                return super().get_object(request, object_id, from_field)
        except (DataError, OverflowError):
            return None


def _is_key(field: Any, text: str) -> bool:
    """Return whether a row can have a key, given as text."""
    try:
        field.run_validators(field.to_python(text))
    except ValidationError:
        return False
    return "\0" not in text


def _parameters_of(filters: Iterable[Any]) -> set[str]:
    """Return the parameters of the filters that are not simply the name of a field."""
    names: set[str] = set()
    for entry in filters:
        if isinstance(entry, tuple) and issubclass(entry[1], DateRangeFilter):
            names.update(entry[1].parameters_of(entry[0]))
        elif isinstance(entry, type) and issubclass(entry, SimpleListFilter):
            names.add(str(entry.parameter_name))
    return names
