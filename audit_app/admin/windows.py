"""Windows of a list: filters by columns without an index, and the rows beyond those counted.

Such a filter examines WINDOW rows in the order of the list, and the list says how far it looked.
The next window begins where the last one ended, so that every row can be reached and no page reads
a whole table.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import BooleanField, DateTimeField, F, Func, Q
from django.db.models.constants import LOOKUP_SEP
from django.utils.dateparse import parse_datetime

from audit_app.admin.column_search import COUNTED_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from django.db.models import Field, QuerySet
    from django.http import HttpRequest

BEFORE: Final = "before"
"""The parameter that names the row before which a list begins."""
WINDOW: Final = COUNTED_ROWS
"""How many rows a filter without an index examines: as many as a list counts."""
CHOICES_FROM: Final = 500
"""How many of the newest rows are read for the values of a column that has no list of them."""
_BETWEEN: Final = "~"


def is_rare(column: str, common: Iterable[str]) -> Func:
    """Return the condition of an index without some values, spelled as the index spells it.

    SQLite uses such an index only for a query that has its condition without a parameter. `common`
    are constants of the code, never input.
    """
    values = ", ".join(f"'{value}'" for value in common)
    return Func(
        F(column), template=f"NOT (%(expressions)s IN ({values}))", output_field=BooleanField()
    )


class WindowFilter(admin.SimpleListFilter):
    """A filter by the values of a column, over all rows.

    `values` are those that it offers, and all that there are if `is_closed`. `common` are those
    that the column's index leaves out; it is empty if there is no index. A common value is searched
    window by window, any other through the index.
    """

    values: ClassVar[Sequence[str]] = ()
    is_closed: ClassVar[bool] = True
    common: ClassVar[Sequence[str]] = ()

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the values; if they are not all known, also those of the newest rows."""
        options = dict.fromkeys(self.values)
        if not self.is_closed:
            column = str(self.parameter_name)
            newest = model_admin.model.objects.order_by(*model_admin.ordering)
            rows = newest.values_list(column, flat=True)[:CHOICES_FROM]
            options |= dict.fromkeys(sorted({str(value) for value in rows}))
            if chosen := request.GET.get(column):
                options[chosen] = None
        return [(value, value or "-") for value in options]

    def has_output(self) -> bool:
        """Return true: a chosen value counts even if the newest rows have none."""
        return True

    @property
    def needs_window(self) -> bool:
        """Whether a value was chosen that no index finds."""
        value = self.value()
        return value is not None and not (self.common and value not in self.common)

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002 required by the interface
        """Return the rows that have the chosen value, unless the list has to look for them."""
        if self.value() is None or self.needs_window:
            return queryset
        return queryset.filter(self.condition(), is_rare(str(self.parameter_name), self.common))

    def condition(self) -> Q:
        """Return the condition that a row has the chosen value."""
        return Q(**{str(self.parameter_name): self.value()})


def filter_by(
    column: str, values: Iterable[str] = (), *, common: Iterable[str] = ()
) -> type[WindowFilter]:
    """Return a filter by a column of the row or of a related one; `values` lists all it can have.

    `common` are the values that the column's index leaves out, and empty without an index.
    """

    class ColumnFilter(WindowFilter):
        title = column.rpartition(LOOKUP_SEP)[2]
        parameter_name = column

    ColumnFilter.values = tuple(values)
    ColumnFilter.common = tuple(common)
    return ColumnFilter


def open_filter_by(
    column: str, values: Iterable[str] = (), *, common: Iterable[str] = ()
) -> type[WindowFilter]:
    """Return a filter that offers also the values of the newest rows."""
    column_filter = filter_by(column, values, common=common)
    column_filter.is_closed = False
    return column_filter


class ListPlace:
    """A place in a list in descending order, as its columns' values."""

    def __init__(self, model: Any, ordering: Sequence[Any]) -> None:
        """Take the columns from the order of the list."""
        options = model._meta  # noqa: SLF001 documented API of models
        # A list may repeat a column, because the order of its queryset follows its own.
        names = dict.fromkeys(str(name).removeprefix("-") for name in ordering)
        self.fields: list[Field[Any, Any]] = [
            options.pk if name == "pk" else options.get_field(name) for name in names
        ]
        self.names = [field.attname for field in self.fields]

    def rows_before(self, text: str) -> Q:
        """Return the condition for the rows after a place in the list; raises ValueError."""
        parts = text.split(_BETWEEN, len(self.fields) - 1)
        if len(parts) != len(self.fields):
            raise ValueError(text)
        try:
            pairs = zip(self.fields, parts, strict=True)
            values = [_value(_column(field), part) for field, part in pairs]
        except ValidationError as error:
            raise ValueError(text) from error
        if "" in values:
            raise ValueError(text)
        return self._compared(values, "lt", "lt")

    def rows_until(self, values: Sequence[Any]) -> Q:
        """Return the condition for the rows up to a place in the list, including it."""
        return self._compared(values, "gt", "gte")

    def text_of(self, values: Sequence[Any]) -> str:
        """Return a place as an address has it."""
        texts = (v.isoformat() if isinstance(v, datetime) else str(v) for v in values)
        return _BETWEEN.join(texts)

    def _compared(self, values: Sequence[Any], beyond: str, last: str) -> Q:
        """Compare column by column, with a bound of the first one that an index can use."""
        condition = Q(**{f"{self.names[-1]}__{last}": values[-1]})
        for name, value in reversed(list(zip(self.names[:-1], values[:-1], strict=True))):
            bound = Q(**{f"{name}__{beyond}e": value})
            condition = bound & (Q(**{f"{name}__{beyond}": value}) | condition)
        return condition


def _column(field: Any) -> Any:
    """Return the column that has a field's values: of a foreign key, the other table's."""
    return field.target_field if field.is_relation else field


def _value(column: Any, text: str) -> Any:
    """Return a column's value from its text; raises ValueError and ValidationError."""
    if not isinstance(column, DateTimeField):
        return column.to_python(text)
    moment = parse_datetime(text)
    if moment is None or moment.tzinfo is None:
        raise ValueError(text)
    return moment


def place_in(model: Any, ordering: Sequence[Any]) -> ListPlace | None:
    """Return the places of a list, or None unless all of its columns are its own and descend."""
    if not all(isinstance(name, str) and name.startswith("-") for name in ordering):
        return None
    if any(LOOKUP_SEP in name for name in ordering):
        return None
    place = ListPlace(model, ordering)
    # A comparison would leave out rows without a value.
    return None if any(field.null for field in place.fields) else place
