"""The audit in the admin: read-only, filtered by action and date, searched by actor and object."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth.models import User
from django.http import HttpResponse

from audit_app.admin.column_search import COUNTED_ROWS
from audit_app.admin.columns import linked, moment, row_link
from audit_app.admin.filters import DateRangeFilter
from audit_app.admin.records import RecordAdmin, record_request
from audit_app.models import AuditRecord
from audit_app.record import AuditAction

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.utils.safestring import SafeString


class ActionFilter(admin.SimpleListFilter):
    """The actions that the server records."""

    title = "action"
    parameter_name = "action"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:  # noqa: ARG002 required by the interface
        """Return the actions."""
        return [(action.value, action.value) for action in sorted(AuditAction)]

    def queryset(
        self,
        request: HttpRequest,  # noqa: ARG002 required by the interface
        queryset: QuerySet[AuditRecord],
    ) -> QuerySet[AuditRecord]:
        """Return the records of the chosen action."""
        action = self.value()
        return queryset.filter(action=action) if action else queryset


@admin.register(AuditRecord)
class AuditRecordAdmin(RecordAdmin):
    """Who did what to which row, when, why, and from where."""

    list_display = (
        moment("created_at", "when"), linked("actor"), "action", "subject", "detail", "reason",
        "address",
    )  # fmt: skip
    list_filter = (ActionFilter, ("created_at", DateRangeFilter))
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
        lines = [json.dumps(_facts_of(row), ensure_ascii=False) for row in rows]
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
        found: set[int] = set()
        for condition in ({"object_id": search_term}, {"actor_id__in": list(actors)}):
            rows = queryset.filter(**condition).order_by("-pk")
            found.update(rows.values_list("pk", flat=True)[:COUNTED_ROWS])
        return queryset.filter(pk__in=found), False

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
