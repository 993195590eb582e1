"""Admin URLs with values that no row can have: a message instead of a server error.

Django passes the values in an address straight to the database. A value that a column cannot hold,
an impossible date or a regular expression would end in an error page, or in a search that never
ends.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import FieldDoesNotExist
from django.db import DataError, OperationalError, models, transaction
from django.db.models.constants import LOOKUP_SEP

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin
    from django.db.models import QuerySet
    from django.http import HttpRequest

    _Admin = ModelAdmin[Any]
else:
    _Admin = object

UNOFFERED: Final = {"iregex", "range", "regex"}
"""A pattern may keep the database busy indefinitely; Django cannot parse a range from a URL."""
WHOLE: Final = {"exact", "in", "isnull"}
"""Look-ups that reveal nothing of a text to who does not know it."""
_BODIES: Final = (models.TextField, models.JSONField, models.BinaryField)
_IMPOSSIBLE: Final = (
    IncorrectLookupParameters,
    DataError,
    OperationalError,
    OverflowError,
    ValueError,
)


class CheckedList(ChangeList):
    """A list that reports filters that no row can match."""

    def get_queryset(self, request: HttpRequest, *args: Any, **kwargs: Any) -> QuerySet[Any]:
        """Return the rows; raises IncorrectLookupParameters for values of the wrong type."""
        try:
            self._check_day()
            return super().get_queryset(request, *args, **kwargs)
        except _IMPOSSIBLE as error:
            raise self._refused(request) from error

    def get_results(self, request: HttpRequest) -> None:
        """Count the rows, which makes the database look at every value."""
        try:
            with transaction.atomic():
                super().get_results(request)
        except _IMPOSSIBLE as error:
            raise self._refused(request) from error

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

    def _refused(self, request: HttpRequest) -> IncorrectLookupParameters:
        messages.error(request, "The filter has an impossible value. This list shows all rows.")
        return IncorrectLookupParameters()


class CheckedAdmin(_Admin):
    """Shows a CheckedList, and finds no row under an impossible id."""

    def get_changelist(self, request: HttpRequest, **_: Any) -> type[ChangeList]:  # noqa: ARG002 required by the interface
        """Return the class of the list."""
        return CheckedList

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Refuse look-ups that addresses may not use.

        Django allows every field of the row. With the beginning of a text, or a comparison, a list
        would tell letter by letter what its page withholds.
        """
        if not super().lookup_allowed(lookup, value, request):
            return False
        field, names = self._field_of(lookup)
        if isinstance(field, _BODIES):
            return lookup in self.list_filter
        if isinstance(field, models.CharField):
            return names <= WHOLE
        return not names & UNOFFERED

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
