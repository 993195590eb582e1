"""Probes of failed remote agents at the end of their pauses.

An agent that does not describe itself (`agents_app.remote.discovery`) is tried by its next call.
"""

import asyncio
import logging
from datetime import timedelta
from typing import Final

from django.db.models import Q
from django.utils import timezone

from agents_app.models import Agent, AgentKind
from agents_app.models.agents import ENVELOPES
from agents_app.remote import discovery, health
from agents_app.selectors import forget
from agents_app.workers.connections import ReleasingThreads

logger = logging.getLogger(__name__)

AT_ONCE = 20
"""The most agents probed in one round."""
THREADS = 5
"""How many of them are probed at a time."""
ERROR = "Its address no longer describes an agent."
_threads: Final = ReleasingThreads(THREADS, thread_name_prefix="probes")


async def probe_due() -> None:
    """Probe the agents whose pauses are over; each is probed by one process only."""
    due = await health.run_sync(claim)
    descriptions = await asyncio.gather(
        *(_threads.run(discovery.facts_of, agent) for agent in due), return_exceptions=True
    )
    for agent, facts in zip(due, descriptions, strict=True):
        if isinstance(facts, BaseException):
            logger.error("the probe of agent %s failed", agent.pk, exc_info=facts)
            await health.run_sync(health.failed, agent.pk, ERROR, is_probe=True)
        elif facts:
            await health.run_sync(health.answered, agent.pk)
        else:
            await health.run_sync(health.failed, agent.pk, ERROR, is_probe=True)


def probe(agent: Agent) -> None:
    """Probe the address of a saved row now; save its description and health.

    Synchronous; takes a few seconds at most. An address that has never described itself, as with
    AG-UI, ACP and envelopes, does not count as failed.
    """
    if agent.protocol in ENVELOPES:
        # An earlier release read such an address.
        agent.found = {}
    facts, said_before = discovery.facts_of(agent), bool(agent.found)
    agent.found, agent.probed_at = facts or agent.found, timezone.now()
    agent.save(update_fields=["found", "probed_at"])
    if facts:
        health.answered(agent.pk)
    elif said_before:
        health.failed(agent.pk, ERROR, is_probe=True)
    agent.refresh_from_db()


def claim() -> list[Agent]:
    """Return the agents for this process to probe; their pauses are renewed in the meantime."""
    now = timezone.now()
    rows = Agent.objects.filter(
        kind=AgentKind.REMOTE,
        is_enabled=True,
        failures__gte=health.FAILURES,
        retry_at__lte=now,
    ).exclude(Q(found={}) | Q(protocol__in=ENVELOPES))
    claimed: list[Agent] = []
    for agent in rows.order_by("retry_at")[:AT_ONCE]:
        later = now + timedelta(seconds=health.pause_after(agent.failures))
        mine = Agent.objects.filter(pk=agent.pk, retry_at=agent.retry_at)
        if mine.update(retry_at=later, probed_at=now):
            forget(agent)
            claimed.append(agent)
    return claimed
