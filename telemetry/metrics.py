"""The metrics of a process, in a separate registry.

A label has few values: protocols, states, codes. Ids, names of people and of agents are never
labels. Counting takes a microsecond at most, and no lock that another thread holds for long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

# A series' creation time adds nothing to its count.
disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no types for it
REGISTRY: Final = CollectorRegistry(auto_describe=True)
ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)
GCCollector(registry=REGISTRY)

_QUICK: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_SLOW: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800)

HTTP_REQUESTS: Final = Counter(
    "uamp_http_requests",
    "HTTP requests that were answered, by method and class of the status (2xx).",
    ("method", "status"),
    registry=REGISTRY,
)
HTTP_SECONDS: Final = Histogram(
    "uamp_http_request_seconds",
    "Time from a request to the first byte of its answer.",
    registry=REGISTRY,
    buckets=_QUICK,
)
RESPONSES: Final = Counter(
    "uamp_responses",
    "Responses that this process ended, by transport, end state and error code.",
    ("transport", "status", "code"),
    registry=REGISTRY,
)
UNSIGNED: Final = Counter(
    "uamp_unsigned_answers",
    "Answers that should have been signed and could not be.",
    registry=REGISTRY,
)
RESPONSE_SECONDS: Final = Histogram(
    "uamp_response_seconds",
    "Time from the beginning of a response in this process to its committed end.",
    registry=REGISTRY,
    buckets=_SLOW,
)
FIRST_DELTA_SECONDS: Final = Histogram(
    "uamp_first_delta_seconds",
    "Time from the beginning of a response in this process to its first text or sound.",
    registry=REGISTRY,
    buckets=_SLOW,
)
DELTAS: Final = Counter(
    "uamp_deltas",
    "Pieces of text and sound that agents sent, before they are collected for readers.",
    registry=REGISTRY,
)
INFERENCE_SECONDS: Final = Histogram(
    "uamp_inference_seconds",
    "Time of one request to a model, by provider.",
    ("provider",),
    registry=REGISTRY,
    buckets=_SLOW,
)
TOKENS: Final = Counter(
    "uamp_tokens",
    "Tokens that providers reported, by provider and kind (input, output).",
    ("provider", "kind"),
    registry=REGISTRY,
)
PROVIDER_ERRORS: Final = Counter(
    "uamp_provider_errors",
    "Requests to models that failed, by provider and cause.",
    ("provider", "cause"),
    registry=REGISTRY,
)
TOOL_CALLS: Final = Counter(
    "uamp_tool_calls",
    "Tool calls that ended in responses of this process, by kind and whether they failed.",
    ("kind", "outcome"),
    registry=REGISTRY,
)
TOOL_SECONDS: Final = Histogram(
    "uamp_tool_seconds",
    "Time from a tool call to its result, waits for workers and people included, by kind.",
    ("kind",),
    registry=REGISTRY,
    buckets=_SLOW,
)
TASKS: Final = Counter(
    "uamp_tasks",
    "Tasks that this worker ended, by task and whether they failed.",
    ("task", "outcome"),
    registry=REGISTRY,
)
TASK_SECONDS: Final = Histogram(
    "uamp_task_seconds",
    "Time that a worker spent on a task.",
    ("task",),
    registry=REGISTRY,
    buckets=_SLOW,
)
WEBHOOK_ATTEMPTS: Final = Counter(
    "uamp_webhook_attempts",
    "Attempts of this worker to deliver webhooks: sent, refused by the receiver, or unanswered.",
    ("outcome",),
    registry=REGISTRY,
)
DATABASE_WAIT_SECONDS: Final = Histogram(
    "uamp_database_wait_seconds",
    "Time that a call waited for a database thread.",
    registry=REGISTRY,
    buckets=_QUICK,
)
TURN_WRITE_SECONDS: Final = Histogram(
    "uamp_turn_write_seconds",
    "Time from a turn's write being queued to its commit.",
    registry=REGISTRY,
    buckets=_QUICK,
)
TURN_GROUP_SIZE: Final = Histogram(
    "uamp_turn_group_size",
    "Turns that were committed in one transaction.",
    registry=REGISTRY,
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256),
)


def register(collector: Collector) -> None:
    """Add a collector, whose values are read when the metrics are."""
    REGISTRY.register(collector)


def exposition() -> tuple[bytes, str]:
    """Return all metrics in Prometheus' text format, and its media type; may read rows."""
    return generate_latest(REGISTRY), CONTENT_TYPE_LATEST
