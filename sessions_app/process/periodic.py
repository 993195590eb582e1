"""The periodic jobs of a process: leases, flushes, sweeps, and the search for lost messages.

Each job is a task of its own and survives its own failures; its next round tries again.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from django.conf import settings
from django.utils import timezone

from chat_app.calls.changes import renew_participants, sweep_calls
from payments_app import services as ledger_services
from sessions_app import database
from sessions_app.process import recovery, retention
from sessions_app.store import leases, responses
from sessions_app.tools.tasks import requeue_lost_calls
from sessions_app.webhooks.tasks import send_changes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sessions_app.process.registry import Process

logger = logging.getLogger(__name__)

READ_ROWS_SECONDS: Final = 1.0
POLL_LOGS_SECONDS: Final = 2.0
PRESENCE_SECONDS: Final = 25.0
LEDGER_SECONDS: Final = 5.0
REJOIN_SECONDS: Final = 30.0
# The connections of a person who signed out, or whose key was revoked, end within five seconds,
# the time of the job included.
PRINCIPALS_SECONDS: Final = 2.0
TOUCH_SECONDS: Final = 60.0
CALLS_SECONDS: Final = 3.0
QUEUE_SECONDS: Final = 1.0
WEBHOOKS_SECONDS: Final = 1.0
RETENTION_SECONDS: Final = 60.0
# One kind of row is deleted in batches, each a transaction of its own, until none is left.
RETENTION_BATCHES: Final = 20


class PeriodicJob(NamedTuple):
    """Work that a process repeats, with a pause of so many seconds after each round."""

    name: str
    seconds: float
    run: Callable[[], Awaitable[None]]


def start(process: Process) -> None:
    """Start the periodic jobs of a process."""
    for job in jobs(process):
        process.spawn(_repeat(job), name=job.name)


def jobs(process: Process) -> list[PeriodicJob]:
    """Return the periodic jobs of a process."""

    async def renew_leases() -> None:
        if process.runs:
            await database.run(leases.renew_leases, process.id, list(process.runs))

    async def sweep() -> None:
        await recovery.sweep(process)
        await database.run(requeue_lost_calls)

    async def ledger() -> None:
        # Before the sweep: the holds of responses that run, or wait for a person, stay.
        paid = [response_id for response_id, run in process.runs.items() if run.has_price]
        await database.run(ledger_services.renew, paid, seconds=settings.UAMP_HOLD_SECONDS)
        await database.run(ledger_services.expire_and_audit)

    async def touch() -> None:
        await process.followers.touch_sessions()
        await database.run(responses.forget_old_checkpoints)

    async def calls() -> None:
        held = [session_id for follower in followers for session_id in follower.session_ids]
        now = timezone.now()
        await database.run(renew_participants, held, now=now)
        await database.run(sweep_calls, now)

    runs, followers = process.runs, process.followers
    return [
        PeriodicJob("renew leases", settings.UAMP_LEASE_SECONDS / 3, renew_leases),
        PeriodicJob("flush answers", settings.UAMP_FLUSH_MS / 1000, runs.flush),
        PeriodicJob("read rows", READ_ROWS_SECONDS, runs.read_rows),
        PeriodicJob("poll logs", POLL_LOGS_SECONDS, followers.poll_logs),
        PeriodicJob("check watches", settings.UAMP_WATCH_SECONDS, followers.check_watches),
        PeriodicJob("sweep responses", settings.UAMP_SWEEP_SECONDS, sweep),
        PeriodicJob("sweep the ledger", LEDGER_SECONDS, ledger),
        PeriodicJob("renew presence", PRESENCE_SECONDS, followers.renew_presence),
        PeriodicJob("check principals", PRINCIPALS_SECONDS, followers.check_principals),
        PeriodicJob("touch sessions", TOUCH_SECONDS, touch),
        PeriodicJob("join the group of processes", REJOIN_SECONDS, process.signals.join),
        PeriodicJob("renew and sweep calls", CALLS_SECONDS, calls),
        PeriodicJob("start queued turns", QUEUE_SECONDS, process.start_queued),
        PeriodicJob("send webhooks", WEBHOOKS_SECONDS, send_changes),
        PeriodicJob("delete old rows", RETENTION_SECONDS, delete_old_rows),
    ]


async def delete_old_rows() -> None:
    """Delete rows that have no use any more (process.retention)."""
    for _ in range(RETENTION_BATCHES):
        if not await database.run(retention.sweep):
            return


async def _repeat(job: PeriodicJob) -> None:
    while True:
        try:
            await job.run()
        except Exception:
            # The database or the layer may be away; the next round finds it back.
            logger.exception("the periodic job %r failed", job.name)
        await asyncio.sleep(job.seconds)
