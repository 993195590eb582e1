"""The leases of running responses: renewal, handing back, and claiming after expiry.

A response belongs to the process in its row until `lease_until`. Each claim raises its `fence`,
which makes writes by its previous process fail. Synchronous.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import transaction
from django.db.models import Case, F, PositiveIntegerField, When
from django.utils import timezone

from sessions_app.models import Response
from sessions_app.selectors import parked_responses
from sessions_app.transitions import move
from uamp import RESPONSE_TRANSITIONS, ResponseState, ResponseTrigger, moves

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from django.db.models import QuerySet
    from django.db.models.functions import Now

OFFER_SECONDS: Final = 5.0
"""How long a process has to claim a response that was handed to it.

The clocks of its giver and of the process that sweeps may each differ by TOLERANCE_SECONDS from the
database's (`uamp_project.database_clock`): more than twice that, or offers could lapse when made.
"""
_STARTED: Final = moves(RESPONSE_TRANSITIONS, ResponseTrigger.START)
_CLAIM_HANDED_OVER: Final = f"""
UPDATE sessions_app_response
SET status = '{_STARTED[ResponseState.QUEUED]}', fence = fence + 1, lease_until = %s,
    offered_fence = CASE WHEN offered_fence = fence THEN fence + 1 ELSE offered_fence END
WHERE process = %s AND finished_at IS NULL AND status = '{ResponseState.QUEUED}'
"""  # noqa: S608 states of the table


def renew_leases(process: str, fences: Mapping[str, int]) -> list[str]:
    """Renew the leases of the responses that a process runs; return those that it has lost.

    `fences` maps its responses to their fences. A process that stalls for longer than a lease loses
    its responses to another, which claims them with the next fence.
    """
    until = timezone.now() + timedelta(seconds=settings.UAMP_LEASE_SECONDS)
    with transaction.atomic():
        # Lock in the same order as turn writes, skipping rows that are being ended.
        held = list(
            Response.objects.select_for_update(no_key=True, skip_locked=True)
            .filter(pk__in=list(fences), process=process, status__in=Response.LIVE)
            .order_by("pk")
            .values_list("pk", flat=True)
        )
        Response.objects.filter(pk__in=held).update(lease_until=until)
    # The others are being written, have ended, or belong to another process.
    if not (others := fences.keys() - held):
        return []
    rows = Response.objects.filter(pk__in=others).values_list("pk", "fence")
    return [pk for pk, fence in rows if fence > fences[pk]]


def end_leases(processes: Collection[str]) -> None:
    """End the leases of the responses of processes that have died, for others to claim them."""
    now = timezone.now()
    Response.objects.filter(
        process__in=list(processes), finished_at__isnull=True, lease_until__gt=now
    ).update(lease_until=now)


def park_response(response_id: str, *, fence: int) -> bool:
    """Hand a response back before its lease ends, at shutdown: queued, or still waiting.

    Return False if another process already holds it or it has ended.
    """
    now = timezone.now()
    mine = Response.objects.filter(pk=response_id, fence=fence)
    return bool(
        move(mine, ResponseTrigger.PARK, lease_until=now)
        or mine.filter(status=ResponseState.WAITING).update(lease_until=now)
    )


def give_response(response_id: str, *, fence: int, process: str) -> bool:
    """Hand a response to another process, which has OFFER_SECONDS to claim it.

    Return False if another process already holds it or it has ended.
    """
    until = timezone.now() + timedelta(seconds=OFFER_SECONDS)
    mine = Response.objects.filter(pk=response_id, fence=fence)
    offer = {"lease_until": until, "process": process, "offered_fence": fence}
    return bool(move(mine, ResponseTrigger.PARK, **offer))


def claim_handed_over(process: str, response_ids: Collection[str] | None = None) -> list[Response]:
    """Claim responses that other processes handed to this one: the given ids, or all."""
    where, values = "", [timezone.now() + timedelta(seconds=settings.UAMP_LEASE_SECONDS), process]
    if response_ids is not None:
        if not response_ids:
            return []
        where = f" AND id IN ({', '.join(['%s'] * len(response_ids))})"
        values += response_ids
    return list(Response.objects.raw(f"{_CLAIM_HANDED_OVER}{where} RETURNING *", values))


def orphans(now: datetime | Now) -> QuerySet[Response]:
    """Return the responses with an expired lease that were running or whose wait is over."""
    late = Response.objects.filter(finished_at__isnull=True, lease_until__lt=now)
    return late.exclude(parked_responses())


def claim_orphans(process: str, *, running: Collection[str], limit: int = 50) -> list[Response]:
    """Claim responses with an expired lease that were running or whose wait is over.

    A response that waits for an open tool call stays parked: its result may still arrive, and the
    client or person would otherwise be asked twice. It is claimed anyway if it is to be cancelled
    or its session is deleted. Responses `running` in this process are never claimed. The returned
    rows have the process that had them before.
    """
    now = timezone.now()
    others = orphans(now).exclude(pk__in=list(running)).order_by("lease_until")[:limit]
    until = now + timedelta(seconds=settings.UAMP_LEASE_SECONDS)
    claimed = []
    for row in list(others):
        # The fence in the condition ensures that exactly one process wins.
        free = Response.objects.filter(
            pk=row.pk, fence=row.fence, status=row.status, lease_until__lt=now
        )
        changes = {
            "fence": F("fence") + 1,
            "offered_fence": _moved_offer(),
            "process": process,
            "lease_until": until,
        }
        if row.status == ResponseState.QUEUED:
            won = move(free, ResponseTrigger.START, **changes)
        else:
            won = free.update(**changes)
        if won:
            row.refresh_from_db(fields=["fence", "offered_fence", "status"])
            claimed.append(row)
    return claimed


def _moved_offer() -> Case:
    """Return the next fence if no daemon has had the question, as in `_CLAIM_HANDED_OVER`."""
    return Case(
        When(offered_fence=F("fence"), then=F("fence") + 1),
        default=F("offered_fence"),
        output_field=PositiveIntegerField(),
    )
