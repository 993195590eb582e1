"""Writes of running responses: cancel requests, flushed output, checkpoints, ends of waits.

The start and the end of a response are written with its turn (`orm`, `sql`). Synchronous.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

import uamp
from agents_app import checkpoints
from agents_app.remote import tasks
from sessions_app.models import Response
from sessions_app.transitions import move_one
from uamp import ResponseState, ResponseTrigger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_app.remote.tasks import TaskHandle
    from uap import AgentState


@dataclass(frozen=True, kw_only=True, slots=True)
class Canceller:
    """The person who cancelled a response."""

    user_id: int
    username: str


def request_cancel(response_id: str, user_id: int | None = None) -> None:
    """Record a request to cancel a response, for its process to read, and who made it.

    The first request stays. `user_id` is None for work that ends with another response.
    """
    Response.objects.filter(
        pk=response_id, status__in=Response.LIVE, cancel_requested_at__isnull=True
    ).update(cancel_requested_at=timezone.now(), cancel_requested_by=user_id)


def cancel_answers(chat_id: str, agent_id: str | None, user_id: int) -> None:
    """Record a person's request to cancel the running answers of an agent, or of all, in a chat."""
    running = Response.objects.filter(
        chat_id=chat_id, status__in=Response.LIVE, cancel_requested_at__isnull=True
    )
    if agent_id is not None:
        running = running.filter(agent_id=agent_id)
    running.update(cancel_requested_at=timezone.now(), cancel_requested_by=user_id)


def is_running(response_id: str) -> bool:
    """Return whether a response has not ended."""
    return Response.objects.filter(pk=response_id, status__in=Response.LIVE).exists()


def canceller_of(response_id: str) -> Canceller | None:
    """Return the person who asked to cancel a response, or the one that it works for, if any."""
    named = ("cancel_requested_by", "cancel_requested_by__username")
    work = "session__parent_call__response"
    row_id: str | None = response_id
    while row_id:
        rows = Response.objects.filter(pk=row_id).values_list(*named, work)
        user_id, username, row_id = rows.first() or (None, None, None)
        if user_id is not None:
            return Canceller(user_id=user_id, username=username or "")
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class Flush:
    """A running response's answer and usage so far, as stored in its row.

    `under_way` estimates a step that has written or spoken but is not in `usage`.
    """

    response_id: str
    fence: int
    output: Sequence[uamp.ContentItem]
    usage: uamp.UsageStats | None = None
    under_way: uamp.UsageStats | None = None
    inferences: list[dict[str, Any]] | None = None


_FLUSH: Final = f"""
UPDATE sessions_app_response SET text = %s, output = %s, usage = %s, usage_under_way = %s,
    inferences = %s
WHERE id = %s AND fence = %s AND status IN ({", ".join(f"'{state}'" for state in Response.LIVE)})
"""  # noqa: S608 states of the table


def flush_responses(flushes: Sequence[Flush]) -> set[str]:
    """Store the answers so far; return the ids of the responses that were not locked.

    Another write holds a locked row. A single `executemany` writes a thousand responses.
    """
    with transaction.atomic():
        # Lock in the same order as turn writes, skipping rows that are being ended.
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
                _json_of(flush.inferences),
                flush.response_id,
                flush.fence,
            )
            for flush in flushes
            if flush.response_id in free
        ]
        with connection.cursor() as cursor:
            cursor.executemany(_FLUSH, rows)
    return free


def _json_of(value: object) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def save_checkpoint(
    response_id: str,
    *,
    fence: int,
    text: str,
    output: Sequence[uamp.ContentItem],
    usage: uamp.UsageStats | None,
    inferences: list[dict[str, Any]] | None,
    state: AgentState,
    step: int,
) -> None:
    """Store an agent's state and its answer so far, unless another process took over."""
    with transaction.atomic():
        held = Response.objects.filter(
            pk=response_id, fence=fence, status__in=Response.LIVE
        ).update(
            text=text,
            output=msgspec.to_builtins(tuple(output)),
            usage=msgspec.to_builtins(usage),
            usage_under_way=None,
            inferences=inferences,
        )
        if held:
            checkpoints.save(
                response_id,
                state=state,
                output=output,
                usage=usage,
                step=step,
                fence=fence,
                at=timezone.now(),
            )


def save_remote_task(response_id: str, handle: TaskHandle, *, fence: int) -> None:
    """Store where a remote agent's answer is in progress, unless another process took over."""
    with transaction.atomic():
        mine = Response.objects.select_for_update(no_key=True).filter(
            pk=response_id, fence=fence, status__in=Response.LIVE
        )
        if mine.exists():
            tasks.save(response_id, handle, fence=fence, at=timezone.now())


def give_question(response_id: str, *, fence: int) -> bool:
    """Record that a daemon is about to be given the question; return False if it must not be.

    Another process has taken the response over, or it has ended.
    """
    mine = Response.objects.filter(pk=response_id, fence=fence, status__in=Response.LIVE)
    return bool(mine.update(offered_fence=None))


def forget_old_checkpoints() -> None:
    """Delete leftover checkpoints and remote tasks of responses that ended or were deleted."""
    before = timezone.now() - timedelta(seconds=settings.UAMP_LEASE_SECONDS)
    checkpoints.delete(_ended(checkpoints.saved_before(before)))
    tasks.delete_all(_ended(tasks.written_before(before)))


def _ended(response_ids: Sequence[str]) -> set[str]:
    live = Response.objects.filter(pk__in=response_ids, status__in=Response.LIVE)
    return set(response_ids).difference(live.values_list("pk", flat=True))


def continue_response(response_id: str, *, fence: int) -> None:
    """Set a waiting response to in_progress; no change if it already is.

    Raises TransitionRefused if it has ended or another process holds it.
    """
    mine = Response.objects.filter(pk=response_id, fence=fence)
    if mine.filter(status=ResponseState.IN_PROGRESS).exists():
        return
    move_one(mine, ResponseTrigger.CONTINUE)
