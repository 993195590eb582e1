"""Fair shares of the workers: one asker's long tools do not keep those of others waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import Count, F, Q, Window
from django.db.models.functions import RowNumber

from sessions_app.models import ToolCall, ToolCallKind
from sessions_app.states import ToolCallState

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet

SHARE: Final = 2
"""The most calls of an asker that run while others wait: half the threads of one server's worker.

All visitors count as one asker.
"""

_ASKER: Final = "response__session__user"


def may_start(call: ToolCall, now: datetime) -> bool:
    """Return whether a call may start, or has to leave its worker to the calls of others.

    It leaves the worker if its asker has SHARE calls running and an asker with fewer is waiting. A
    call that may not start stays queued.
    """
    session = call.response.session
    asker = None if session is None else session.user_id
    unfinished = ToolCall.objects.filter(kind=ToolCallKind.LONG, finished_at__isnull=True)
    running = unfinished.filter(status=ToolCallState.RUNNING, lease_until__gte=now)
    counts = running.order_by().values_list(_ASKER).annotate(Count("pk"))
    full = {user for user, count in counts if count >= SHARE}
    if asker not in full:
        return True
    served = Q(**{f"{_ASKER}__in": full - {None}})
    if None in full:
        served |= Q(**{f"{_ASKER}__isnull": True})
    return not unfinished.filter(status=ToolCallState.QUEUED).exclude(served).exists()


def in_turn(calls: QuerySet[ToolCall]) -> QuerySet[Any]:
    """Return calls in the order of their turns: the first of each asker, then the second ones."""
    place = Window(RowNumber(), partition_by=F(_ASKER), order_by="id")
    return calls.annotate(place=place).order_by("place", "id")
