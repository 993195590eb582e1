"""The hourly figures that the operators' home page adds up."""

from __future__ import annotations

from django.contrib import admin

from audit_app.admin.records import RecordAdmin
from payments_app.money import Money
from sessions_app.models import AnswerHour, ChargeHour, CountedHour


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
