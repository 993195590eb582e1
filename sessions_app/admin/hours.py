"""The data of the operators' home page: hourly figures and live processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.utils import timezone

from audit_app.admin.columns import badge, moment
from audit_app.admin.records import RecordAdmin
from payments_app.money import Money
from sessions_app.admin.filters import LostProcessFilter
from sessions_app.models import AnswerHour, ChargeHour, CountedHour, ProcessBeat

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.utils.safestring import SafeString


@admin.register(CountedHour)
class CountedHourAdmin(RecordAdmin):
    """Hours whose answers and charges have been counted."""

    list_display = ("hour", "is_complete", "counted_at")


@admin.register(AnswerHour)
class AnswerHourAdmin(RecordAdmin):
    """The ended answers of an hour."""

    list_display = (
        "hour", "agent_id", "transport", "status", "cause", "answers", "input_tokens",
        "output_tokens",
    )  # fmt: skip


@admin.register(ChargeHour)
class ChargeHourAdmin(RecordAdmin):
    """The charges of an hour."""

    list_display = ("hour", "agent_id", "protocol", "sum")
    fields = list_display
    readonly_fields = ("sum",)

    @admin.display(description="amount")
    def sum(self, row: ChargeHour) -> str:
        """Return the amount formatted as money."""
        return f"{Money(row.amount, row.asset)} {row.asset}"


@admin.register(ProcessBeat)
class ProcessBeatAdmin(RecordAdmin):
    """The running server processes and workers, for those who may see tool calls."""

    list_display = ("name", "kind", "serves", "state", moment("started_at"), moment("seen_at"))
    list_filter = (LostProcessFilter,)
    ordering = ("-seen_at",)
    fields = ("name", "kind", "serves", "state", "started_at", "seen_at")
    readonly_fields = ("serves", "state")

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002 required by the interface
        """Return whether a person may see tool calls."""
        return request.user.has_perm("sessions_app.view_toolcall")

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Return the same."""
        return self.has_view_permission(request)

    @admin.display(description="queues")
    def serves(self, row: ProcessBeat) -> str:
        """Return the queues that a worker serves."""
        return ", ".join(row.queues)

    @admin.display(description="state")
    def state(self, row: ProcessBeat) -> SafeString:
        """Return whether it is alive."""
        is_lost = (timezone.now() - row.seen_at).total_seconds() > row.LOST_SECONDS
        return badge("lost", "bad") if is_lost else badge("alive", "good")
