"""The clockwork of a process: leases, flushes, sweeps, and the tick that finds lost messages.

Each beat is its own task and survives its own failures; the next beat tries again.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.utils import timezone

from chat_app.members import presence
from payments_app import services as ledger_services
from sessions_app import database
from sessions_app.process import recovery, retention
from sessions_app.store import leases, responses
from sessions_app.tools.tasks import reap

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sessions_app.process.registry import Process

logger = logging.getLogger(__name__)

READ_ROWS_SECONDS: Final = 1.0
POLL_LOGS_SECONDS: Final = 2.0
PRESENCE_SECONDS: Final = 25.0
LEDGER_SECONDS: Final = 5.0
REJOIN_SECONDS: Final = 30.0
# Who signed out, or whose key was revoked, is parted from within five seconds, the beat's own time
# included.
PRINCIPALS_SECONDS: Final = 2.0
TOUCH_SECONDS: Final = 60.0
RETENTION_SECONDS: Final = 60.0
# One kind of row is deleted in batches, each a transaction of its own, until none is left.
RETENTION_BATCHES: Final = 20


def start(process: Process) -> None:
    """Start the beats of a process."""

    async def renew() -> None:
        if process.runs:
            await database.run(leases.renew_leases, process.id, list(process.runs))

    async def sweep() -> None:
        await recovery.sweep(process)
        await database.run(reap)

    async def ledger() -> None:
        # Before the sweep: what runs, or waits for a person, is not over.
        paid = [response_id for response_id, run in process.runs.items() if run.has_price]
        await database.run(ledger_services.renew, paid, seconds=settings.UAMP_HOLD_SECONDS)
        await database.run(ledger_services.expire_and_audit)

    async def presence() -> None:
        await renew_presence(process)

    async def touch() -> None:
        await process.touch_sessions()
        await database.run(responses.forget_old_checkpoints)

    beats: list[tuple[str, float, Callable[[], Awaitable[None]]]] = [
        ("renew", settings.UAMP_LEASE_SECONDS / 3, renew),
        ("flush", settings.UAMP_FLUSH_MS / 1000, process.flush),
        ("read_rows", READ_ROWS_SECONDS, process.read_rows),
        ("poll_logs", POLL_LOGS_SECONDS, process.poll_logs),
        ("sweep", settings.UAMP_SWEEP_SECONDS, sweep),
        ("ledger", LEDGER_SECONDS, ledger),
        ("presence", PRESENCE_SECONDS, presence),
        ("principals", PRINCIPALS_SECONDS, process.check_principals),
        ("touch", TOUCH_SECONDS, touch),
        ("rejoin", REJOIN_SECONDS, process.join),
        ("retention", RETENTION_SECONDS, forget),
    ]
    for name, seconds, beat in beats:
        process.spawn(_beat(name, seconds, beat), name=name)


async def forget() -> None:
    """Delete what has no use any more."""
    for _ in range(RETENTION_BATCHES):
        if not await database.run(retention.sweep):
            return


async def renew_presence(process: Process) -> None:
    """Say that the sockets of people are open: those that are, not those whose end was lost."""
    held = [f.presence_id for f in list(process.followers) if f.presence_id is not None]
    await database.run(presence.renew_presence, held, now=timezone.now())


async def _beat(name: str, seconds: float, beat: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await beat()
        except Exception:
            # The database or the layer may be away; the beat must go on to find them back.
            logger.exception("the beat %s failed", name)
        await asyncio.sleep(seconds)
