"""Metrics and tracing of one response, for operators."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from telemetry import log_fields, metrics, span_attributes, spans

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.context import Context

    from sessions_app.response.context import RunContext
    from sessions_app.response.end.endings import Ending


class MeasuredResponse:
    """Counts the events of a response and times it. Used only by the run's task."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._began = time.monotonic()
        self._is_first = True

    def count(self) -> None:
        """Count an event sent by the agent."""
        metrics.DELTAS.inc()
        if self._is_first:
            self._is_first = False
            metrics.FIRST_DELTA_SECONDS.observe(time.monotonic() - self._began)

    def end(self, ending: Ending) -> None:
        """Record the end of the response."""
        metrics.RESPONSES.labels(
            self._context.protocol, ending.status, ending.error.code if ending.error else ""
        ).inc()
        metrics.RESPONSE_SECONDS.observe(time.monotonic() - self._began)

    @contextmanager
    def span(self, parent: Context | None) -> Iterator[None]:
        """Add the response's ids to this task's log lines, and record a span."""
        context = self._context
        log_fields.begin(session_id=context.session_id or "", response_id=context.response_id)
        with spans.span(
            "response",
            parent=parent,
            attributes={
                span_attributes.RESPONSE_ID: context.response_id,
                span_attributes.CHAT_ID: context.chat_id,
                span_attributes.TRANSPORT: context.protocol,
                span_attributes.AGENT_NAME: context.spec.name,
            },
        ):
            yield
