"""`GET /metrics`: Prometheus metrics of this process, and of the rows of all processes.

The path exists only if UAMP_METRICS_TOKEN is set, and requires it as a bearer token, because the
numbers reveal how a server is used. Each process reports its own counters; the gauges of open work
and of the ledger are read from the rows, at most once in READ_SECONDS.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.http import Http404, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from agents_app.rest.problems import refusal
from payments_app.selectors import LedgerHealth, ledger_health
from sessions_app import database
from sessions_app.open_work import OpenWork, open_work
from sessions_app.process import registry
from telemetry import metrics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.http import HttpRequest

logger = logging.getLogger(__name__)

READ_SECONDS: Final = 10.0
WAIT_SECONDS: Final = 3.0
"""How long a scrape waits for the rows: below the time-out of Prometheus, and of the pool."""


class ProcessCollector(Collector):
    """The connections and runs of this process; `note` is called on its event loop."""

    def __init__(self) -> None:
        self._connections: dict[str, int] = {}
        self._runs = 0

    def note(self) -> None:
        """Record what the process holds now."""
        process = registry.current_or_none()
        if process is None:
            return
        self._connections = Counter(
            connection.transport
            for connection in list(process.connections)
            if not connection.has_ended
        )
        self._runs = len(process.runs)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges."""
        connections = GaugeMetricFamily(
            "uamp_connections",
            "Sockets and HTTP exchanges of clients in this process.",
            labels=["transport"],
        )
        for transport, count in sorted(self._connections.items()):
            connections.add_metric([transport], count)
        yield connections
        yield GaugeMetricFamily(
            "uamp_running_responses", "Responses that this process runs.", value=self._runs
        )


class RowsCollector(Collector):
    """The open work and the ledger of all processes, as `refresh` read them."""

    def __init__(self) -> None:
        self._read_at = -READ_SECONDS
        self._rows: tuple[OpenWork, LedgerHealth] | None = None

    async def refresh(self) -> None:
        """Read the rows again if the last read is too old; forget them without an answer in time.

        While the database is away, each of its threads waits for a connection.
        """
        now = time.monotonic()
        if now - self._read_at < READ_SECONDS:
            return
        self._read_at = now
        try:
            self._rows = await asyncio.wait_for(database.run(_read), WAIT_SECONDS)
        except (TimeoutError, DatabaseError, InterfaceError) as error:
            logger.warning("the metrics of the database's rows are absent: %r", error)
            self._rows = None

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges."""
        rows = self._rows
        yield GaugeMetricFamily(
            "uamp_rows_read",
            "1 if the gauges of the database's rows were read; they are absent otherwise.",
            value=int(rows is not None),
        )
        if rows is not None:
            work, ledger = rows
            yield from _of_work(work)
            yield from _of_ledger(ledger)

    def describe(self) -> list[GaugeMetricFamily]:
        """Return nothing: the gauges depend on the rows."""
        return []


def _read() -> tuple[OpenWork, LedgerHealth]:
    return open_work(), ledger_health()


def _of_work(work: OpenWork) -> Iterator[GaugeMetricFamily]:
    open_rows = GaugeMetricFamily(
        "uamp_open_work",
        "Rows of all processes that have not ended, by kind and state.",
        labels=["kind", "state"],
    )
    counts = {
        # Always there, since workers are scaled by them (deploy/helm).
        ("tool_long", "queued"): 0,
        ("tool_long", "running"): 0,
        **{("response", state): count for state, count in work.responses.items()},
        **{(f"tool_{kind}", state): count for (kind, state), count in work.tool_calls.items()},
        **{("queued_turn", state): count for state, count in work.queued_turns.items()},
        ("webhook_delivery", "queued"): work.webhook_deliveries,
        ("payment_request", "waiting"): work.payment_requests,
    }
    for labels, count in sorted(counts.items()):
        open_rows.add_metric(labels, count)
    yield open_rows
    oldest = GaugeMetricFamily(
        "uamp_oldest_open_work_timestamp_seconds",
        "When the oldest open row of a kind was created (Unix time).",
        labels=["kind"],
    )
    for kind, moment in sorted(work.oldest.items()):
        oldest.add_metric([kind], moment.timestamp())
    yield oldest


def _of_ledger(ledger: LedgerHealth) -> Iterator[GaugeMetricFamily]:
    yield GaugeMetricFamily(
        "uamp_ledger_mismatches", "The findings of the last audits.", value=len(ledger.mismatches)
    )
    yield GaugeMetricFamily(
        "uamp_ledger_frozen", "1 while payouts are frozen.", value=int(ledger.frozen_at is not None)
    )
    checked = GaugeMetricFamily(
        "uamp_ledger_audit_timestamp_seconds",
        "When an audit of this kind last ended (Unix time).",
        labels=["kind"],
    )
    for kind, moment in (("recent", ledger.checked_at), ("whole", ledger.whole_at)):
        if moment is not None:
            checked.add_metric([kind], moment.timestamp())
    yield checked


_process: Final = ProcessCollector()
metrics.register(_process)
_rows: Final = RowsCollector()
metrics.register(_rows)


@require_safe
@never_cache
async def show_metrics(request: HttpRequest) -> HttpResponse:
    """Serve Prometheus; 404 without UAMP_METRICS_TOKEN, 401 for a wrong token."""
    token: str = settings.UAMP_METRICS_TOKEN
    if not token:
        raise Http404
    header = request.headers.get("Authorization", "")
    if not hmac.compare_digest(header.encode(), f"Bearer {token}".encode()):
        return refusal("unauthorized", instance=request.path)
    _process.note()
    await _rows.refresh()
    text, media_type = await asyncio.to_thread(metrics.exposition)
    return HttpResponse(text, content_type=media_type)
