"""Running answers, recent failures and rows that need attention, cached for FIGURES_SECONDS.

Every count covers few rows of an index, or stops at MAX_COUNT. Daily figures are sums of hourly
ones (`hours`). No request adds up answers or transfers.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.core.cache import cache
from django.db.models import Count, Q
from django.utils import timezone

from agents_app import connections
from agents_app import selectors as agents
from chat_app.members import presence
from payments_app import selectors as ledger
from payments_app.money import DEFAULT_ASSET, Money
from payments_app.reporting.charges import undecided_adjustments, undecided_top_ups
from sessions_app.models import (
    PaymentRequest,
    QueuedTurn,
    Response,
    Session,
    SessionTransport,
    ToolCall,
    ToolCallKind,
    Webhook,
    WebhookDelivery,
)
from sessions_app.reporting.hours import DAYS, HOUR, hour_of, recent_figures
from sessions_app.reporting.liveness import Liveness, read_liveness
from sessions_app.selectors import parked_responses
from sessions_app.states import QueuedTurnState, ToolCallState
from uamp import SessionState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from django.db.models import QuerySet

    from payments_app.selectors import LedgerHealth

FIGURES_SECONDS: Final = 60
KEY: Final = "sessions:figures:4"
MAX_COUNT: Final = 1_000
"""The most rows that any count of this page reads."""
ERROR_HOURS: Final = 24
FAILING_ANSWERS: Final = 3
FAILING_AGENTS: Final = 5
UNCLAIMED_SECONDS: Final = 60
"""After this time without a worker, workers are down or busy; they claim calls within seconds."""
LOST_LEASE_SECONDS: Final = 30
"""A lease this long expired was not taken over, which the sweep normally does in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Values by position (an hour or day) and name; `names` are ordered by total."""

    places: Sequence[datetime]
    names: Sequence[str]
    values: Mapping[tuple[datetime, str], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingAgent:
    """An agent with FAILING_ANSWERS or more failed answers in ERROR_HOURS, at least half of all."""

    id: str
    name: str
    failed: int
    answers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFigures:
    """The figures of the operators' home page as of `at`; counts are capped at MAX_COUNT."""

    at: datetime
    running: Mapping[str, int]
    sockets: int
    daemons: int
    sessions: int
    open_calls: int
    open_deliveries: int
    stuck_calls: int
    unclaimed_calls: int
    stuck_answers: int
    failing: Sequence[FailingAgent]
    unpaid: int
    refused_turns: int
    disabled_webhooks: int
    top_ups: int
    adjustments: int
    missing_hours: int
    health: LedgerHealth
    liveness: Liveness
    errors: Series
    tokens_by_agent: Series
    tokens_by_protocol: Series
    charged_by_agent: Series
    charged_by_protocol: Series


def server_figures() -> ServerFigures:
    """Return the figures, at most FIGURES_SECONDS old."""
    cached: ServerFigures | None = cache.get(KEY)
    if cached is None:
        cached = _read(timezone.now())
        cache.set(KEY, cached, FIGURES_SECONDS)
    return cached


def stuck_calls(now: datetime) -> Q:
    """Return the condition for overdue tool calls, which no worker or client will end."""
    lost = now - timedelta(seconds=LOST_LEASE_SECONDS)
    return Q(finished_at__isnull=True) & (
        Q(deadline__lt=lost) | Q(lease_until__isnull=False, lease_until__lt=lost)
    )


def unclaimed_calls(now: datetime) -> Q:
    """Return the condition for tool calls that no worker has taken for UNCLAIMED_SECONDS."""
    return Q(
        finished_at__isnull=True,
        kind=ToolCallKind.LONG,
        status=ToolCallState.QUEUED,
        created_at__lt=now - timedelta(seconds=UNCLAIMED_SECONDS),
    )


def stuck_answers(now: datetime) -> Q:
    """Return the condition for answers that no process runs or has taken over.

    Answers that wait for a person, a payment or a tool need no process until then.
    """
    lost = now - timedelta(seconds=LOST_LEASE_SECONDS)
    return Q(finished_at__isnull=True, lease_until__lt=lost) & ~parked_responses()


def disabled_lately(now: datetime) -> Q:
    """Return the condition for webhooks disabled within the last DAYS days."""
    return Q(disabled_at__isnull=False, disabled_at__gte=now - timedelta(days=DAYS))


def _read(now: datetime) -> ServerFigures:
    live = Response.objects.filter(finished_at__isnull=True)
    counted, missing = recent_figures(now)
    names = agent_names(
        {row.agent_id for row in counted.answers} | {row.agent_id for row in counted.charges}
    )
    transports = dict(SessionTransport.choices)
    first = hour_of(now).replace(hour=0) - timedelta(days=DAYS - 1)
    days = [first + timedelta(days=number) for number in range(DAYS)]
    hours = [hour_of(now) - HOUR * number for number in range(ERROR_HOURS)][::-1]
    answers, charges = counted.answers, counted.charges
    charged = [row for row in charges if row.asset == DEFAULT_ASSET]
    return ServerFigures(
        at=now,
        running={
            row["status"]: row["answers"]
            for row in live.order_by().values("status").annotate(answers=Count("pk"))
        },
        sockets=presence.open_sockets(now, MAX_COUNT),
        daemons=connections.open_daemons(MAX_COUNT),
        sessions=_count(Session.objects.filter(status=SessionState.ACTIVE)),
        open_calls=_count(ToolCall.objects.filter(finished_at__isnull=True)),
        open_deliveries=_count(WebhookDelivery.objects.filter(finished_at__isnull=True)),
        stuck_calls=_count(ToolCall.objects.filter(stuck_calls(now))),
        unclaimed_calls=_count(ToolCall.objects.filter(unclaimed_calls(now))),
        failing=_failing((row for row in answers if row.hour in hours), names),
        stuck_answers=_count(Response.objects.filter(stuck_answers(now))),
        unpaid=_count(PaymentRequest.objects.filter(decided_at__isnull=True)),
        refused_turns=_count(QueuedTurn.objects.filter(status=QueuedTurnState.FAILED)),
        disabled_webhooks=_count(
            Webhook.objects.filter(disabled_lately(now))
        ),
        top_ups=undecided_top_ups(MAX_COUNT),
        adjustments=undecided_adjustments(MAX_COUNT),
        missing_hours=missing,
        health=ledger.ledger_health(),
        liveness=read_liveness(now, MAX_COUNT),
        errors=series_of(
            hours,
            ((row.hour, row.cause or "unknown", row.answers)
             for row in answers if row.status == "failed"),
        ),
        tokens_by_agent=series_of(
            days,
            ((_day(row.hour), names.get(row.agent_id, row.agent_id), _tokens(row))
             for row in answers),
        ),
        tokens_by_protocol=series_of(
            days,
            ((_day(row.hour), str(transports.get(row.transport, row.transport)) or "none",
              _tokens(row)) for row in answers),
        ),
        charged_by_agent=series_of(
            days,
            ((_day(row.hour), names.get(row.agent_id, row.agent_id) or "no agent", row.amount)
             for row in charged),
        ),
        charged_by_protocol=series_of(
            days,
            ((_day(row.hour), str(transports.get(row.protocol, row.protocol)) or "none",
              row.amount) for row in charged),
        ),
    )  # fmt: skip


def _failing(answers: Iterable[Any], names: Mapping[str, str]) -> list[FailingAgent]:
    """Return the agents that fail most."""
    failed: defaultdict[str, int] = defaultdict(int)
    ended: defaultdict[str, int] = defaultdict(int)
    for row in answers:
        ended[row.agent_id] += row.answers
        failed[row.agent_id] += row.answers if row.status == "failed" else 0
    failing = [
        FailingAgent(id=pk, name=names.get(pk, pk), failed=count, answers=ended[pk])
        for pk, count in failed.items()
        if count >= FAILING_ANSWERS and 2 * count >= ended[pk]
    ]
    return sorted(failing, key=lambda agent: -agent.failed)[:FAILING_AGENTS]


def _count(rows: QuerySet[Any]) -> int:
    counted: int = rows.order_by().values("pk")[:MAX_COUNT].count()
    return counted


def _day(hour: datetime) -> datetime:
    return hour_of(hour).replace(hour=0)


def _tokens(row: Any) -> int:
    total: int = row.input_tokens + row.output_tokens
    return total


def agent_names(agent_ids: Iterable[str]) -> dict[str, str]:
    """Return the names of agents by id, those of deleted agents too."""
    names = agents.names_of([agent_id for agent_id in agent_ids if agent_id])
    return {agent_id: names.get(agent_id, "a deleted agent") for agent_id in agent_ids}


def series_of(places: Sequence[datetime], values: Iterable[tuple[datetime, str, int]]) -> Series:
    """Add up values by position and name; those at unknown positions are left out."""
    positions = set(places)
    sums: defaultdict[tuple[datetime, str], int] = defaultdict(int)
    of_names: defaultdict[str, int] = defaultdict(int)
    for place, name, value in values:
        if place in positions and value:
            sums[place, name] += value
            of_names[name] += value
    names = sorted(of_names, key=lambda name: (-of_names[name], name))
    return Series(places=places, names=names, values=dict(sums))


def money_of(units: int) -> str:
    """Format an amount of a series as money."""
    return f"{Money(units, DEFAULT_ASSET)} {DEFAULT_ASSET}"
