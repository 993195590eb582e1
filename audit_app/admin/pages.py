"""The audit in the admin: read-only, filtered by action, actor, kind and date, and exported."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Q
from django.http import HttpResponse

from audit_app.admin.column_search import COUNTED_ROWS
from audit_app.admin.columns import linked, moment, row_link
from audit_app.admin.filters import DateRangeFilter
from audit_app.admin.records import RecordAdmin, record_request
from audit_app.admin.windows import CHOICES_FROM, WindowFilter
from audit_app.models import AuditRecord
from audit_app.record import AuditAction

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.utils.safestring import SafeString

_FILTERED: Final = ("action", "actor", "kind")
"""The columns that are filtered through an index, in the order of the filters."""
SERVER: Final = "server"
"""The value of the filter for what the server itself did."""
KEY_DIGITS: Final = 18
# The values of a column with few of them: each is the next one after the last in the index.
_KINDS: Final = """
WITH RECURSIVE kinds(kind) AS (
    SELECT (SELECT kind FROM audit_app_auditrecord WHERE kind > '' ORDER BY kind LIMIT 1)
    UNION ALL
    SELECT (
        SELECT record.kind FROM audit_app_auditrecord record
        WHERE record.kind > kinds.kind ORDER BY record.kind LIMIT 1
    ) FROM kinds WHERE kinds.kind IS NOT NULL
)
SELECT kind FROM kinds WHERE kind IS NOT NULL"""


class _AuditFilter(WindowFilter):
    """A filter through an index of its own; a second one looks among the rows of the first."""

    def __init__(
        self, request: HttpRequest, params: dict[str, Any], model: Any, model_admin: Any
    ) -> None:
        before = _FILTERED[: _FILTERED.index(str(self.parameter_name))]
        self.is_second = any(request.GET.get(name) for name in before)
        super().__init__(request, params, model, model_admin)

    @property
    def needs_window(self) -> bool:
        """Whether another filter was chosen, so that no index finds the rows of both."""
        return bool(self.value()) and self.is_second

    def queryset(
        self,
        request: HttpRequest,  # noqa: ARG002 required by the interface
        queryset: QuerySet[AuditRecord],
    ) -> QuerySet[AuditRecord]:
        """Return the records of the chosen value, unless the list has to look for them."""
        if not self.value() or self.needs_window:
            return queryset
        return queryset.filter(self.condition())


class ActionFilter(_AuditFilter):
    """The actions that the server records."""

    title = "action"
    parameter_name = "action"
    values = tuple(action.value for action in sorted(AuditAction))


class ActorFilter(_AuditFilter):
    """The people who acted, by their number; the search finds everyone by name."""

    title = "actor"
    parameter_name = "actor"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the server, the actors of the newest records, and the chosen one."""
        newest = model_admin.model.objects.order_by(*model_admin.ordering)
        rows = newest.values_list("actor_id", flat=True)[:CHOICES_FROM]
        numbers = {pk for pk in rows if pk is not None}
        chosen = request.GET.get(self.parameter_name, "")
        if is_key(chosen):
            numbers.add(int(chosen))
        names = dict(User.objects.filter(pk__in=numbers).values_list("pk", "username"))
        # A person without a row is named by their number.
        people = sorted((str(names.get(pk, pk)), str(pk)) for pk in numbers)
        return [(SERVER, "this server"), *((pk, name) for name, pk in people)]

    def condition(self) -> Q:
        """Return the condition that the chosen person acted, or the server itself."""
        value = str(self.value())
        if value == SERVER:
            return Q(actor__isnull=True)
        if not is_key(value):
            raise ValueError(value)
        return Q(actor=int(value))


class KindFilter(_AuditFilter):
    """The kinds of rows that were acted on, such as `chat_app.chat`."""

    title = "kind"
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:  # noqa: ARG002 required by the interface
        """Return the kinds that the records have, each found through the index."""
        with connection.cursor() as cursor:
            cursor.execute(_KINDS)
            return [(kind, kind) for (kind,) in cursor.fetchall()]


def is_key(text: str) -> bool:
    """Return whether a text is a number that a row can have."""
    return text.isascii() and text.isdecimal() and len(text) <= KEY_DIGITS


@admin.register(AuditRecord)
class AuditRecordAdmin(RecordAdmin):
    """Records of the audit: who did what to which row, when, why, and from where."""

    list_display = (
        moment("created_at", "when"), linked("actor"), "action", "subject", "detail", "reason",
        "address",
    )  # fmt: skip
    list_filter = (ActionFilter, ActorFilter, KindFilter, ("created_at", DateRangeFilter))
    list_select_related = ("actor",)
    search_fields = ("object_id__exact", "actor__username__exact")
    search_help_text = "The id of a row, or the name of the person who acted."
    fields = (
        "created_at", "actor", "action", "subject", "kind", "object_id", "detail", "reason",
        "address",
    )  # fmt: skip
    readonly_fields = ("subject",)
    actions = ("export_records",)

    @admin.action(description="Export the selected records (NDJSON)", permissions=["view"])
    def export_records(self, request: HttpRequest, queryset: QuerySet[AuditRecord]) -> HttpResponse:
        """Return the records as NDJSON, the newest first, at most COUNTED_ROWS; it is recorded."""
        rows = queryset.select_related("actor").order_by("-pk")[:COUNTED_ROWS]
        lines = [json.dumps(_facts_of(row)) for row in rows]
        query = request.META.get("QUERY_STRING", "")
        detail = f"{len(lines)} records {query}".strip()
        record_request(request, AuditAction.AUDIT_EXPORTED, None, detail=detail)
        return HttpResponse(
            "".join(f"{line}\n" for line in lines),
            content_type="application/x-ndjson",
            headers={"Content-Disposition": 'attachment; filename="audit.ndjson"'},
        )

    def get_search_results(
        self,
        request: HttpRequest,  # noqa: ARG002 required by the interface
        queryset: QuerySet[AuditRecord],
        search_term: str,
    ) -> tuple[QuerySet[AuditRecord], bool]:
        """Return the newest records of a row or a person, at most COUNTED_ROWS of each.

        They are the newest among those that pass the page's filters. Each is looked up through its
        own index: an OR condition over two tables would use none.
        """
        if not search_term:
            return queryset, False
        actors = User.objects.filter(username=search_term).values_list("pk", flat=True)
        ids: set[int] = set()
        for condition in ({"object_id": search_term}, {"actor_id__in": list(actors)}):
            rows = queryset.filter(**condition).order_by("-pk")
            ids.update(rows.values_list("pk", flat=True)[:COUNTED_ROWS])
        return queryset.filter(pk__in=ids), False

    @admin.display(description="object")
    def subject(self, row: AuditRecord) -> SafeString | str:
        """Return a link to the row, if the admin has a page for its kind."""
        if not row.object_id:
            return row.kind or "-"
        return row_link(row.kind, row.object_id, f"{row.kind.rpartition('.')[2]} {row.object_id}")


def _facts_of(row: AuditRecord) -> dict[str, Any]:
    """Return a record as exports have it."""
    return {
        "at": row.created_at.isoformat(),
        # A person without a row is named by their number.
        "actor": row.actor_id if row.actor is None else row.actor.get_username(),
        "action": row.action,
        "kind": row.kind,
        "object_id": row.object_id,
        "detail": row.detail,
        "reason": row.reason,
        "address": row.address,
    }
