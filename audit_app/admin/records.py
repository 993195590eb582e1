"""Bases of admin pages: audited actions, read-only rows, bounded counts.

The pages of chats, sessions, agents and the ledger build on them. A list costs the same number of
queries for any number of rows.
"""

from __future__ import annotations

from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.contrib.admin.widgets import AdminSplitDateTime
from django.core.paginator import Page, Paginator
from django.db.models import DateTimeField
from django.forms.models import BaseInlineFormSet
from django.utils.text import capfirst

from audit_app.admin.column_search import COUNTED_ROWS
from audit_app.admin.columns import moment
from audit_app.record import AuditAction, record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.contrib.admin.models import LogEntry
    from django.db.models import Model, QuerySet
    from django.http import HttpRequest, HttpResponse

    # Django's classes take type arguments in its stubs only.
    _Admin = admin.ModelAdmin[Any]
    _Inline = admin.TabularInline[Any, Any]
    _Paginator = Paginator[Any]
    _FormSet = BaseInlineFormSet[Any, Any, Any]
else:
    _Admin = admin.ModelAdmin
    _Inline = admin.TabularInline
    _Paginator = Paginator
    _FormSet = BaseInlineFormSet

NEWEST: Final = 100
"""How many rows an inline of NewestRows shows."""
VIEW_CONTENT: Final = "chat_app.view_content"
"""The right to read what people, agents and tools wrote, and to open files."""


def sees_content(request: HttpRequest) -> bool:
    """Return whether a person may read written content, and not only its metadata."""
    return request.user.has_perm(VIEW_CONTENT)


def hidden_text(what: str) -> str:
    """Say that a page hides written content, and which right shows it; "" for nothing."""
    if not what:
        return ""
    right = VIEW_CONTENT.partition(".")[2]
    return f"Hidden: {what}. A superuser can grant you the right {right} to see them."


class CappedPaginator(_Paginator):
    """Pages of the first COUNTED_ROWS rows: longer lists call for filters, not paging."""

    @cached_property
    def count(self) -> int:
        """Return the number of rows, counted up to the cap."""
        rows: Any = self.object_list
        counted: int = rows.order_by().values("pk")[:COUNTED_ROWS].count()
        return counted

    def page(self, number: Any) -> Page[Any]:
        """Return a page; only the keys of earlier rows are read, without the rows they refer to."""
        number = self.validate_number(number)
        first = (number - 1) * self.per_page
        if not first:
            return super().page(number)
        rows: Any = self.object_list
        keys = list(rows.values_list("pk", flat=True)[first : first + self.per_page])
        return Page(rows.filter(pk__in=keys), number, self)


class ReadOnly:
    """Refuses adding, changing and deleting rows, whatever rights a person has."""

    def has_add_permission(self, request: HttpRequest, *_args: Any) -> bool:  # noqa: ARG002 required by the interface
        """Refuse to add."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002 required by the interface
        """Refuse to change."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002 required by the interface
        """Refuse to delete; this also removes the action `delete_selected`."""
        return False


def record_request(
    request: HttpRequest,
    action: AuditAction,
    subject: Model | tuple[str, str] | None,
    *,
    reason: str = "",
    detail: str = "",
) -> None:
    """Record an action of the request's person in the audit, with the client's address."""
    address = str(request.META.get("REMOTE_ADDR", ""))
    record(request.user, action, subject, reason=reason, address=address, detail=detail)


class AuditedAdmin(_Admin):
    """Also records in the audit what Django's own forms add, change and delete.

    Rows are deleted on their pages, one at a time: Django's action deletes any number at once.
    """

    def get_actions(self, request: HttpRequest) -> Any:
        """Leave out `delete_selected`."""
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    def formfield_for_dbfield(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        """Label both inputs of a date and time, for which Django has no labels."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        widget = getattr(field, "widget", None)
        if field is not None and isinstance(widget, AdminSplitDateTime):
            for part, name in zip(widget.widgets, ("date", "time"), strict=True):
                part.attrs["aria-label"] = f"{capfirst(str(field.label))}: {name}"
        return field

    def log_act(
        self,
        request: HttpRequest,
        subject: Model,
        action: AuditAction,
        detail: str,
        reason: str = "",
    ) -> None:
        """Write an action to the history of its row and to the audit."""
        message = f"{detail} ({reason})" if reason else detail
        super().log_change(request, subject, message)
        record_request(request, action, subject, reason=reason, detail=detail)

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> LogEntry:
        """Record a row that a form added."""
        entry = super().log_addition(request, obj, message)
        record_request(request, AuditAction.ROW_ADDED, obj, detail=entry.get_change_message())
        return entry

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> LogEntry:
        """Record a row that a form changed."""
        entry = super().log_change(request, obj, message)
        record_request(request, AuditAction.ROW_CHANGED, obj, detail=entry.get_change_message())
        return entry

    def log_deletions(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        """Record rows that are about to be deleted."""
        for row in queryset:
            record_request(request, AuditAction.ROW_DELETED, row)
        return super().log_deletions(request, queryset)


class RecordAdmin(ReadOnly, AuditedAdmin):
    """A list of immutable rows, newest first.

    `content_fields` of a page and `content_columns` of a list hold written content: only people who
    may view contents see them, and the audit records it. `find_by` are columns in which the admin's
    search finds rows: `name` exactly, `name__begins` by the beginning of an id. `link_parameters`
    are the look-ups of links to the list that no filter of it offers. Each of them has an index.
    Columns do not sort: sorting by a column without an index reads the whole table.
    """

    content_fields: ClassVar[tuple[str, ...]] = ()
    content_columns: ClassVar[tuple[str, ...]] = ()
    find_by: ClassVar[tuple[str, ...]] = ()
    link_parameters: ClassVar[tuple[str, ...]] = ()
    sortable_by: ClassVar[Any] = ()

    list_per_page = 50
    # Counts next to each filter would read the whole table.
    show_facets = admin.ShowFacets.NEVER
    show_full_result_count = False
    paginator = CappedPaginator
    ordering: ClassVar[Any] = ("-pk",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Leave out written content for people who may not view it."""
        fields = super().get_fields(request, obj)
        return fields if sees_content(request) else _without(fields, self.content_fields)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Show times in UTC with seconds, as lists do."""
        fieldsets = super().get_fieldsets(request, obj)
        if self.has_change_permission(request, obj) or obj is None:
            return fieldsets
        fields = [self._field(name) for name in self.get_fields(request, obj)]
        return [(None, {"fields": fields})]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return also the fields that show times."""
        fields = super().get_readonly_fields(request, obj)
        if self.has_change_permission(request, obj) or obj is None:
            return fields
        return [*fields, *self._times.values()]

    def _field(self, name: Any) -> Any:
        return self._times.get(name, name)

    @cached_property
    def _times(self) -> dict[str, Any]:
        return _moments(self.model)

    def get_list_display(self, request: HttpRequest) -> Any:
        """Leave out written content for people who may not view it; show times in UTC."""
        columns = [self._field(name) for name in super().get_list_display(request)]
        return columns if sees_content(request) else _without(columns, self.content_columns)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list; if it shows written content, the audit records it."""
        if self.content_columns and sees_content(request) and self.has_view_permission(request):
            kind = self.opts.label_lower
            query = request.META.get("QUERY_STRING", "")
            record_request(request, AuditAction.CONTENT_READ, (kind, ""), detail=query)
        return super().changelist_view(request, extra_context)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a row; if the page shows written content, the audit records it."""
        context = {"hidden": self._hidden(request), **(extra_context or {})}
        page = super().change_view(request, object_id, form_url, context)
        shows = self.content_fields or any(
            getattr(inline, "content_fields", ()) for inline in self.inlines
        )
        if shows and page.status_code == HTTPStatus.OK and sees_content(request):
            subject = (self.opts.label_lower, unquote(object_id))
            record_request(request, AuditAction.CONTENT_READ, subject)
        return page

    def _hidden(self, request: HttpRequest) -> str:
        """Return a sentence about the fields that a person may not see; "" if there are none."""
        if sees_content(request):
            return ""
        parts = [name.replace("_", " ") for name in self.content_fields]
        for inline in self.get_inline_instances(request):
            names = getattr(inline, "content_fields", ())
            parts += [f"{name.replace('_', ' ')} of {inline.verbose_name_plural}" for name in names]
        return hidden_text(", ".join(parts))


class NewestRows(_FormSet):
    """The first NEWEST rows of an inline with unbounded rows; a separate list has the others."""

    _newest: QuerySet[Any] | None = None

    def get_queryset(self) -> QuerySet[Any]:
        """Return the first rows in the order of the inline, read once."""
        if self._newest is None:
            self._newest = super().get_queryset()[:NEWEST]
        return self._newest


class RecordInline(ReadOnly, _Inline):
    """Immutable rows of another table on the page of a row."""

    extra = 0
    content_fields: ClassVar[tuple[str, ...]] = ()

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Leave out written content for people who may not view it; show times in UTC."""
        fields = [self._times.get(name, name) for name in super().get_fields(request, obj)]
        return fields if sees_content(request) else _without(fields, self.content_fields)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return also the fields that show times."""
        return [*super().get_readonly_fields(request, obj), *self._times.values()]

    @cached_property
    def _times(self) -> dict[Any, Any]:
        return _moments(self.model)


def _moments(model: type[Model]) -> dict[Any, Any]:
    """Return the columns of times by name, as fields that show them."""
    return {
        field.name: moment(field.name, str(field.verbose_name))
        for field in model._meta.concrete_fields  # noqa: SLF001 documented API
        if isinstance(field, DateTimeField)
    }


def _without(names: Any, left_out: Sequence[str]) -> list[Any]:
    return [name for name in names if name not in left_out]
