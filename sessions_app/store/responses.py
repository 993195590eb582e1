"""The writes of running responses: requests to cancel, kept output, checkpoints, the end of a wait.

The start and the end of a response are writes of a turn (`orm`, `sql`). Synchronous.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import msgspec
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

import uamp
from agents_app import checkpoints
from sessions_app.models import Response
from sessions_app.transitions import move_one
from uamp import ResponseState, ResponseTrigger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from uap import AgentState


@dataclass(frozen=True, kw_only=True, slots=True)
class Canceller:
    """The person who cancelled a response."""

    user_id: int
    username: str


def request_cancel(response_id: str, user_id: int | None = None) -> None:
    """Record in its row that a response is to be cancelled, and by whom; its process reads that.

    The first request stays. Work that ends with another response has no person.
    """
    Response.objects.filter(
        pk=response_id, status__in=Response.LIVE, cancel_requested_at__isnull=True
    ).update(cancel_requested_at=timezone.now(), cancel_requested_by=user_id)


def cancel_answers(chat_id: str, agent_id: str, user_id: int) -> None:
    """Record for each response of an agent in a chat that a person asked to cancel it."""
    Response.objects.filter(
        chat_id=chat_id,
        agent_id=agent_id,
        status__in=Response.LIVE,
        cancel_requested_at__isnull=True,
    ).update(cancel_requested_at=timezone.now(), cancel_requested_by=user_id)


def canceller_of(response_id: str) -> Canceller | None:
    """Return who asked to cancel a response, if it was a person."""
    found = Response.objects.filter(pk=response_id, cancel_requested_by__isnull=False)
    row = found.values_list("cancel_requested_by", "cancel_requested_by__username").first()
    return None if row is None else Canceller(user_id=row[0], username=row[1])


@dataclass(frozen=True, kw_only=True, slots=True)
class Flush:
    """The answer so far of a running response and its usage, as its row keeps them.

    `under_way` is the estimate of a step that wrote or spoke and is not in `usage`.
    """

    response_id: str
    fence: int
    output: Sequence[uamp.ContentItem]
    usage: uamp.UsageStats | None = None
    under_way: uamp.UsageStats | None = None


_FLUSH: Final = f"""
UPDATE sessions_app_response SET text = %s, output = %s, usage = %s, usage_under_way = %s
WHERE id = %s AND fence = %s AND status IN ({", ".join(f"'{state}'" for state in Response.LIVE)})
"""  # noqa: S608 states of the table


def flush_responses(flushes: Sequence[Flush]) -> set[str]:
    """Keep the answers so far of running responses; return the ids of those that no write held.

    A thousand running responses are written by one `executemany`.
    """
    with transaction.atomic():
        # In the order of the turn writes, and past those that are being ended right now.
        free = set(
            Response.objects.select_for_update(no_key=True, skip_locked=True)
            .filter(pk__in=[flush.response_id for flush in flushes])
            .order_by("pk")
            .values_list("pk", flat=True)
        )
        rows = [
            (
                "".join(i.text for i in flush.output if isinstance(i, uamp.TextContent)),
                msgspec.json.encode(flush.output).decode(),
                _json_of(flush.usage),
                _json_of(flush.under_way),
                flush.response_id,
                flush.fence,
            )
            for flush in flushes
            if flush.response_id in free
        ]
        with connection.cursor() as cursor:
            cursor.executemany(_FLUSH, rows)
    return free


def _json_of(usage: uamp.UsageStats | None) -> str | None:
    return None if usage is None else msgspec.json.encode(usage).decode()


def save_checkpoint(
    response_id: str,
    *,
    fence: int,
    text: str,
    output: Sequence[uamp.ContentItem],
    usage: uamp.UsageStats | None,
    state: AgentState,
    step: int,
) -> None:
    """Keep an agent's state and its answer so far, unless another process holds the response."""
    with transaction.atomic():
        held = Response.objects.filter(
            pk=response_id, fence=fence, status__in=Response.LIVE
        ).update(
            text=text,
            output=msgspec.to_builtins(tuple(output)),
            usage=msgspec.to_builtins(usage),
            usage_under_way=None,
        )
        if held:
            checkpoints.save(
                response_id,
                state=state,
                output=output,
                step=step,
                fence=fence,
                at=timezone.now(),
            )


def forget_old_checkpoints() -> None:
    """Delete checkpoints whose response ended, or is gone, without deleting its own."""
    before = timezone.now() - timedelta(seconds=settings.UAMP_LEASE_SECONDS)
    old = set(checkpoints.saved_before(before))
    live = Response.objects.filter(pk__in=old, status__in=Response.LIVE)
    checkpoints.delete(old.difference(live.values_list("pk", flat=True)))


def continue_response(response_id: str, *, fence: int) -> None:
    """Set a waiting response to in_progress; one that is in_progress stays so.

    Raises TransitionRefused where it has ended, or another process holds it.
    """
    mine = Response.objects.filter(pk=response_id, fence=fence)
    if mine.filter(status=ResponseState.IN_PROGRESS).exists():
        return
    move_one(mine, ResponseTrigger.CONTINUE)
