"""Filters for rows that need attention, with the conditions of the operators' home page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import Q
from django.utils import timezone

from sessions_app.reporting import figures
from sessions_app.reporting.liveness import lost_processes

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest


class ConditionFilter(admin.SimpleListFilter):
    """Rows that meet a condition, found through a partial index."""

    def condition(self) -> Q:
        """Return the current condition."""
        raise NotImplementedError

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:  # noqa: ARG002 required by the interface
        """Return the only choice besides all rows."""
        return [("yes", "Yes")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002 required by the interface
        """Return the rows that meet the condition."""
        if self.value() != "yes":
            return queryset
        # As values, since SQLite would otherwise read all rows in list order to find the few.
        matches = queryset.model.objects.filter(self.condition()).order_by()
        return queryset.filter(
            pk__in=list(matches.values_list("pk", flat=True)[: figures.MAX_COUNT])
        )


class StuckCallFilter(ConditionFilter):
    """Tool calls that no worker or client will end."""

    title = "overdue"
    parameter_name = "stuck"

    def condition(self) -> Q:
        """Return the current condition."""
        return figures.stuck_calls(timezone.now())


class OpenFilter(ConditionFilter):
    """Rows that have not ended."""

    title = "unfinished"
    parameter_name = "open"

    def condition(self) -> Q:
        """Return the condition."""
        return Q(finished_at__isnull=True)


class UnclaimedCallFilter(ConditionFilter):
    """Tool calls that wait for a worker."""

    title = "without a worker"
    parameter_name = "unclaimed"

    def condition(self) -> Q:
        """Return the current condition."""
        return figures.unclaimed_calls(timezone.now())


class StuckAnswerFilter(ConditionFilter):
    """Answers that no process runs."""

    title = "without a process"
    parameter_name = "stuck"

    def condition(self) -> Q:
        """Return the current condition."""
        return figures.stuck_answers(timezone.now())


class DisabledFilter(ConditionFilter):
    """Recently disabled webhooks."""

    title = "disabled in the last 14 days"
    parameter_name = "disabled"

    def condition(self) -> Q:
        """Return the current condition."""
        return figures.disabled_lately(timezone.now())


class LostProcessFilter(ConditionFilter):
    """Processes that stopped without deleting their row."""

    title = "stopped without notice"
    parameter_name = "lost"

    def condition(self) -> Q:
        """Return the current condition."""
        return lost_processes(timezone.now())
