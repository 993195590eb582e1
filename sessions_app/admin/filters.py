"""Filters by agent, and for rows that need attention, as on the operators' home page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.db.models import Q
from django.utils import timezone

from agents_app.models import Agent
from audit_app.admin.windows import CHOICES_FROM
from sessions_app.reporting import figures
from sessions_app.reporting.liveness import lost_processes

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest


class AgentFilter(admin.SimpleListFilter):
    """The rows of one agent: those of the newest rows are offered, as there may be many agents."""

    title = "agent"
    parameter_name = "agent"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the agents of the newest rows, and the chosen one."""
        newest = model_admin.model.objects.order_by(*model_admin.ordering)
        ids = {*newest.values_list("agent_id", flat=True)[:CHOICES_FROM]}
        ids.add(request.GET.get(self.parameter_name))
        return list(Agent.objects.filter(pk__in=ids).order_by("name").values_list("pk", "name"))

    def has_output(self) -> bool:
        """Return true: a chosen agent counts even if it has no rows."""
        return True

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002 required by the interface
        """Return its rows."""
        return queryset if self.value() is None else queryset.filter(agent_id=self.value())


class ConditionFilter(admin.SimpleListFilter):
    """Rows that meet a condition, found through a partial index."""

    def condition(self) -> Q:
        """Return the current condition."""
        raise NotImplementedError

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:  # noqa: ARG002 required by the interface
        """Return the only choice besides all rows."""
        return [("yes", "Yes")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows that meet the condition."""
        if self.value() != "yes":
            return queryset
        # As values, since SQLite would otherwise read all rows in list order to find the few.
        matches = queryset.model.objects.filter(self.condition()).order_by()
        keys = list(matches.values_list("pk", flat=True)[: figures.MAX_COUNT + 1])
        # An action builds its list twice.
        if len(keys) > figures.MAX_COUNT and request.method == "GET":
            messages.warning(
                request,
                f"More than {figures.MAX_COUNT:,} rows match the filter {self.title!r}. The list"
                f" shows only {figures.MAX_COUNT:,} of them, and other filters apply to these.",
            )
        return queryset.filter(pk__in=keys[: figures.MAX_COUNT])


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
