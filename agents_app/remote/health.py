"""The health of agents that run elsewhere, stored in their rows.

Of a connected agent it is the last error, and whether the agent has answered since. Remote agents
have a circuit breaker with growing pauses.

After FAILURES consecutive calls that failed through the other side's fault, an agent is not called
for a while and its answers fail at once. The pause doubles with each failure of a call or probe at
its end, and ends with the next successful answer. Calls that were already running when a pause
began count no further.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import DatabaseError, transaction
from django.db.models import F
from django.utils import timezone

from agents_app.models import Agent, AgentKind
from agents_app.models.agents import presence_changed
from agents_app.selectors import AgentSpec, forget, remembered
from uamp.errors import ErrorCode as AnswerErrorCode
from upp import ErrorCode, UPPError

logger = logging.getLogger(__name__)

FAILURES = 3
FIRST_PAUSE = 30
LONGEST_PAUSE = 900
"""In seconds."""
ERROR_CHARS = 500
_ITS_FAULT = frozenset(
    {
        ErrorCode.NETWORK_ERROR,
        ErrorCode.TIMEOUT,
        ErrorCode.INVALID_RESPONSE,
        ErrorCode.PROVIDER_ERROR,
        ErrorCode.AUTHENTICATION_FAILED,
        ErrorCode.MODEL_NOT_FOUND,
    }
)

_DAEMONS_FAULT = frozenset(
    {AnswerErrorCode.PROVIDER_ERROR, AnswerErrorCode.ANSWER_TOO_LONG, AnswerErrorCode.INTERRUPTED}
)

RunSync = Callable[..., Awaitable[Any]]
_run: RunSync = asyncio.to_thread


def written_by(run: RunSync) -> None:
    """Set the function that runs database work off the event loop."""
    global _run  # noqa: PLW0603 one for the process
    _run = run


def pause_of(spec: AgentSpec) -> float:
    """Return for how many more seconds an agent must not be called; 0 if it may be."""
    return max(0.0, (spec.retry_at or 0.0) - time.time())


async def run_sync(function: Callable[..., Any], *args: object, **options: object) -> Any:
    """Run a synchronous database function off the event loop and return its result."""
    return await _run(function, *args, **options)


async def note_failure(spec: AgentSpec, error: UPPError, *, message: str) -> None:
    """Record an error if it is the other side's fault; `message` must be free of credentials."""
    if error.code in _ITS_FAULT:
        await _run(failed, spec.id, message[:ERROR_CHARS])


async def note_daemon_failure(spec: AgentSpec, code: str, *, message: str) -> None:
    """Record that a daemon's answer failed through its fault; see `note_failure`."""
    if code not in _DAEMONS_FAULT:
        return
    try:
        await _run(daemon_failed, spec.id, message[:ERROR_CHARS])
    except DatabaseError:
        # The answer ends all the same.
        logger.exception("the error of agent %s was not recorded", spec.name)


async def note_answer(spec: AgentSpec) -> None:
    """Record that an agent answered; writes nothing unless it had failed before."""
    # Calls beside this one may have failed since it began.
    current = remembered(spec.id)
    if current is None or current.failures or spec.failures:
        try:
            await _run(answered, spec.id)
        except DatabaseError:
            # The answer ends all the same.
            logger.exception("the answer of agent %s was not recorded", spec.name)


def pause_after(failures: int) -> int:
    """Return the pause in seconds after a number of consecutive failures."""
    if failures < FAILURES:
        return 0
    return min(FIRST_PAUSE << min(failures - FAILURES, 16), LONGEST_PAUSE)


def failed(agent_id: str, message: str, *, is_probe: bool = False) -> None:
    """Record a failed call or probe of an agent, with a message for operators. Synchronous."""
    now = timezone.now()
    with transaction.atomic():
        # Locked, so that of several calls that fail at once only the first begins a pause.
        agent = Agent.objects.select_for_update(no_key=True).filter(pk=agent_id).first()
        if agent is None:
            return
        was_online = agent.is_online
        # A probe has moved the end of the pause ahead.
        is_pausing = agent.retry_at is not None and agent.retry_at > now
        if is_probe or not is_pausing:
            agent.failures += 1
            if pause := pause_after(agent.failures):
                agent.retry_at = now + timedelta(seconds=pause)
                logger.warning(
                    "agent %s failed %s times and is not called for %s s",
                    *(agent, agent.failures, pause),
                )
        Agent.objects.filter(pk=agent_id).update(
            failures=agent.failures, retry_at=agent.retry_at, last_error=message, failed_at=now
        )
    _changed(agent, was_online=was_online)


def daemon_failed(agent_id: str, message: str) -> None:
    """Record a failed answer of a connected agent, with a message for operators. Synchronous."""
    agent = Agent.objects.filter(pk=agent_id).first()
    if agent is None:
        return
    Agent.objects.filter(pk=agent_id).update(
        failures=F("failures") + 1, last_error=message, failed_at=timezone.now()
    )
    forget(agent)


class LastFailure(NamedTuple):
    """When an agent failed last, and why: a text for its owner and operators.

    `is_past` if it has answered since.
    """

    at: datetime
    message: str
    is_past: bool


def last_failures(agent_ids: Collection[str], *, owner_id: int) -> dict[str, LastFailure]:
    """Return the last failures of those agents that a person owns, by id. Synchronous."""
    rows = Agent.objects.filter(pk__in=agent_ids, owner_id=owner_id).exclude(kind=AgentKind.HOSTED)
    return {
        agent.pk: LastFailure(agent.failed_at, agent.last_error, is_past=not agent.failures)
        for agent in rows
        if agent.failed_at is not None
    }


def answered(agent_id: str) -> None:
    """Record that an agent answers again. Synchronous."""
    agent = Agent.objects.filter(pk=agent_id).first()
    if agent is None or not (agent.failures or agent.retry_at):
        return
    was_online = agent.is_online
    agent.failures, agent.retry_at = 0, None
    Agent.objects.filter(pk=agent_id).update(failures=0, retry_at=None)
    _changed(agent, was_online=was_online)


def _changed(agent: Agent, *, was_online: bool) -> None:
    forget(agent)
    if agent.is_online != was_online:
        presence_changed.send(sender=Agent, agents=[agent])
