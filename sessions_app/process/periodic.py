"""The periodic jobs of a process: leases, flushes, sweeps, and recovery of lost messages.

Each job is a separate task that survives its own failures and tries again in the next round.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.conf import settings
from django.utils import timezone

from agents_app import connections
from agents_app.remote.probes import probe_due
from agents_app.workers.connections import ReleasingThreads
from chat_app.calls.operations import renew_participants, running_calls, sweep_calls
from chat_app.digests.tasks import look_for_unread
from chat_app.log.checkpoints import BATCH, sign_heads
from chat_app.log_tree.growth import BATCH as TREE_BATCH
from chat_app.log_tree.growth import grow
from chat_app.log_tree.submission import submissions_due, submit, take_answer
from chat_app.push import tasks as pushes
from chat_app.search import index
from payments_app import services as ledger_services
from sessions_app import database
from sessions_app.billing import requests
from sessions_app.connection.client_connection import CLOSE_SILENT
from sessions_app.models import ProcessKind
from sessions_app.process import beats, recovery, retention
from sessions_app.process.due_work import DueWork
from sessions_app.queue import rows
from sessions_app.reporting.hours import count_hours
from sessions_app.store import leases, responses
from sessions_app.tools import calls
from sessions_app.tools.tasks import requeue_lost_calls, silent_calls
from sessions_app.webhooks import tasks as webhooks
from sessions_app.webhooks.tasks import look_at_chats, send_changes
from uamp import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from django.db.models import QuerySet
    from django.db.models.functions import Now

    from chat_app.log_tree.submission import Submission
    from sessions_app.connected.agent_socket import AgentSocket, RegisteredAgent
    from sessions_app.process.due_work import DueRows
    from sessions_app.process.registry import Process

logger = logging.getLogger(__name__)

_witness_threads: Final = ReleasingThreads(1, thread_name_prefix="witnesses")
READ_ROWS_SECONDS: Final = 1.0
# With a lease of 3.8 s (agents_app.connections), a death is noticed within five seconds.
LOOK_SECONDS: Final = 0.7
POLL_LOGS_SECONDS: Final = 2.0
ANSWER_COUNT_SECONDS: Final = 0.5
NOT_YOURS: Final = "The agent is no longer yours, or is switched off."
PRESENCE_SECONDS: Final = 25.0
LEDGER_SECONDS: Final = 5.0
REJOIN_SECONDS: Final = 30.0
# Connections end within five seconds of a sign-out or revoked key, including the job's own
# duration; so do the answers of those who may no longer ask.
PRINCIPALS_SECONDS: Final = 2.0
TOUCH_SECONDS: Final = 60.0
CALLS_SECONDS: Final = 3.0
QUEUE_SECONDS: Final = 1.0
WEBHOOKS_SECONDS: Final = 1.0
MISSED_WEBHOOKS_SECONDS: Final = 60.0
PUSH_SECONDS: Final = 1.0
MAIL_SECONDS: Final = 60.0
RETENTION_SECONDS: Final = 60.0
COUNT_SECONDS: Final = 60.0
INDEX_SECONDS: Final = 1.0
# Searches read the messages that are left for the next round.
INDEX_BATCHES: Final = 20
PROBE_SECONDS: Final = 15.0
CHECKPOINT_SECONDS: Final = 300.0
# The most batches of heads per round; the next round continues.
CHECKPOINT_BATCHES: Final = 20
# A server that has old answers but no figures yet counts them when it starts.
COUNT_BATCHES: Final = 60
# Each batch is a transaction of its own; rounds end early when no rows are left.
RETENTION_BATCHES: Final = 20


class PeriodicJob(NamedTuple):
    """Work that a process repeats, pausing for `seconds` after each round.

    With `due`, each round waits until one of these queries returns rows (`due_work`).
    """

    name: str
    seconds: float
    run: Callable[[], Awaitable[None]]
    due: DueRows | None = None


_others: Final[list[PeriodicJob]] = []


def also_run(job: PeriodicJob) -> None:
    """Let each process also run a job of a higher-level app."""
    if job not in _others:
        _others.append(job)


def start(process: Process) -> None:
    """Start the periodic jobs of a process."""
    for job in with_look(jobs(process)):
        process.spawn(_repeat(job), name=job.name)


def with_look(listed: Sequence[PeriodicJob]) -> list[PeriodicJob]:
    """Return the jobs, of which some wait until they have work, and one that looks for it."""
    wakes = {job.name: asyncio.Event() for job in listed if job.due is not None}
    work = DueWork({job.name: job.due for job in listed if job.due is not None})

    async def look() -> None:
        for name in await database.run(work.jobs):
            wakes[name].set()

    waiting = [_waiting(job, wakes[job.name]) if job.due else job for job in listed]
    return [*waiting, PeriodicJob("look for work", LOOK_SECONDS, look)]


def _waiting(job: PeriodicJob, wake: asyncio.Event) -> PeriodicJob:
    async def run() -> None:
        await wake.wait()
        wake.clear()
        await job.run()

    return job._replace(run=run)


def jobs(process: Process) -> list[PeriodicJob]:
    """Return the periodic jobs of a process."""

    async def renew_leases() -> None:
        if process.runs:
            fences = {pk: run.context.fence for pk, run in process.runs.items()}
            lost = await database.run(leases.renew_leases, process.id, fences)
            process.runs.lose({pk: fences[pk] for pk in lost})

    is_sweeping = asyncio.Lock()

    async def sweep() -> None:
        async with is_sweeping:
            await recovery.sweep(process)
        await database.run(requeue_lost_calls)

    async def take_over_dead() -> None:
        async with is_sweeping:
            await recovery.take_over_dead(process)

    async def ledger() -> None:
        # Before the sweep, so that running and waiting responses keep their holds.
        paid = [response_id for response_id, run in process.runs.items() if run.has_price]
        await database.run(ledger_services.renew, paid, seconds=settings.UAMP_HOLD_SECONDS)
        await database.run(ledger_services.expire_and_audit)

    async def principals() -> None:
        await followers.check_principals(stop_answers=runs.check_standing)

    async def touch() -> None:
        await process.followers.touch_sessions()
        await database.run(responses.forget_old_checkpoints)

    async def voice_calls() -> None:
        held = [session_id for follower in followers for session_id in follower.session_ids]
        now = timezone.now()
        await database.run(renew_participants, held, now=now)
        await database.run(sweep_calls, now)

    async def show_alive() -> None:
        await database.run(beats.beat, process.id, ProcessKind.SERVER)

    runs, followers = process.runs, process.followers
    return [
        PeriodicJob("renew leases", settings.UAMP_LEASE_SECONDS / 3, renew_leases),
        PeriodicJob("beat", beats.BEAT_SECONDS, show_alive),
        PeriodicJob("flush answers", settings.UAMP_FLUSH_MS / 1000, runs.flush),
        PeriodicJob("read rows", READ_ROWS_SECONDS, runs.read_rows),
        PeriodicJob("poll logs", POLL_LOGS_SECONDS, followers.poll_logs),
        PeriodicJob("check watches", settings.UAMP_WATCH_SECONDS, followers.check_watches),
        PeriodicJob("sweep responses", settings.UAMP_SWEEP_SECONDS, sweep, _to_sweep),
        PeriodicJob("take over from dead processes", 0, take_over_dead, _dead_processes),
        PeriodicJob("sweep the ledger", LEDGER_SECONDS, ledger),
        PeriodicJob("renew presence", PRESENCE_SECONDS, followers.renew_presence),
        PeriodicJob("check principals", PRINCIPALS_SECONDS, principals),
        PeriodicJob("touch sessions", TOUCH_SECONDS, touch),
        PeriodicJob("join the group of processes", REJOIN_SECONDS, process.signals.join),
        PeriodicJob("renew and sweep calls", CALLS_SECONDS, voice_calls, _running_calls),
        PeriodicJob("start queued turns", QUEUE_SECONDS, process.start_queued, _queued_turns),
        PeriodicJob("send webhooks", WEBHOOKS_SECONDS, send_changes, webhooks.due),
        PeriodicJob("find missed webhooks", MISSED_WEBHOOKS_SECONDS, look_at_chats),
        PeriodicJob("send notifications", PUSH_SECONDS, send_pushes, pushes.due),
        PeriodicJob("mail unread messages", MAIL_SECONDS, mail_unread),
        PeriodicJob("delete old rows", RETENTION_SECONDS, delete_old_rows),
        PeriodicJob("index messages", INDEX_SECONDS, index_messages),
        PeriodicJob("count the last hours", COUNT_SECONDS, count_last_hours),
        PeriodicJob("probe remote agents", PROBE_SECONDS, probe_due),
        PeriodicJob("sign the heads of logs", CHECKPOINT_SECONDS, sign_grown_logs),
        PeriodicJob("grow the tree of log heads", CHECKPOINT_SECONDS, grow_tree),
        *_jobs_of_agents(process),
        *_others,
    ]


def _to_sweep(now: Now) -> list[QuerySet[Any]]:
    return [calls.late(now), requests.overdue(now), leases.orphans(now), silent_calls(now)]


def _dead_processes(_: Now) -> list[QuerySet[Any]]:
    return [connections.dead()]


def _running_calls(_: Now) -> list[QuerySet[Any]]:
    return [running_calls()]


def _queued_turns(now: Now) -> list[QuerySet[Any]]:
    return [rows.due(now)]


def _jobs_of_agents(process: Process) -> list[PeriodicJob]:
    """Return the jobs for the daemons of connected agents."""
    connected = process.connected

    async def renew_agents() -> None:
        await process.disconnect_daemons()
        lost_of: dict[AgentSocket, list[RegisteredAgent]] = {}
        for daemon in await connected.disowned_daemons():
            lost_of.setdefault(daemon.link, []).append(daemon)
        for connection in process.followers:
            link = connection.agent_socket
            if link is None:
                continue
            if link.is_silent:
                connection.close(CLOSE_SILENT)
            connection.end_registrations(lost_of.get(link, ()), ErrorCode.FORBIDDEN, NOT_YOURS)

    async def take_handed_over() -> None:
        if len(connected):
            await recovery.take_handed_over(process)

    return [
        PeriodicJob("renew agents", settings.UAMP_LEASE_SECONDS / 3, renew_agents),
        PeriodicJob("count answers of agents", ANSWER_COUNT_SECONDS, connected.count_answers),
        PeriodicJob("take given responses", READ_ROWS_SECONDS, take_handed_over),
    ]


async def delete_old_rows() -> None:
    """Delete expired rows (process.retention)."""
    for _ in range(RETENTION_BATCHES):
        if not await database.run(retention.sweep):
            return


async def send_pushes() -> None:
    """Queue notifications for browsers, and have workers send them (chat_app.push)."""
    await database.run(pushes.send_news)


async def mail_unread() -> None:
    """Have workers mail what stayed unread (chat_app.digests)."""
    await database.run(look_for_unread)


async def index_messages() -> None:
    """Add new messages to the search index of SQLite (chat_app.search.index)."""
    for _ in range(INDEX_BATCHES):
        if not await database.run(index.fill):
            return


async def count_last_hours() -> None:
    """Count the hours that have ended, for the operators' figures (reporting.hours)."""
    for _ in range(COUNT_BATCHES):
        if not await database.run(count_hours, timezone.now()):
            return


async def sign_grown_logs() -> None:
    """Sign the heads of logs that have grown (chat_app.log.checkpoints)."""
    for _ in range(CHECKPOINT_BATCHES):
        if await database.run(sign_heads, timezone.now()) < BATCH:
            return


async def grow_tree() -> None:
    """Add signed heads to the tree, sign its new head and have witnesses cosign it."""
    for _ in range(CHECKPOINT_BATCHES):
        if await database.run(grow, timezone.now()) < TREE_BATCH:
            break
    for due in await database.run(submissions_due):
        submission: Submission | None = due
        while submission is not None:
            answer = await _witness_threads.run(submit, submission)
            submission = await database.run(take_answer, submission, answer, timezone.now())


async def _repeat(job: PeriodicJob) -> None:
    while True:
        try:
            await job.run()
        except Exception:
            # The database or the layer may be down; the next round tries again.
            logger.exception("the periodic job %r failed", job.name)
        await asyncio.sleep(job.seconds)
