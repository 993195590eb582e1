"""OpenTelemetry spans: a request, a response, an inference, a tool call in a worker.

Without `configure` no span records anything. Attributes hold ids, model names and counts; never a
text of a person or a model, a key or an address.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind as SpanKind  # noqa: PLC0414 exported
from opentelemetry.trace import StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

    from opentelemetry.context import Context
    from opentelemetry.trace import Span
    from opentelemetry.util.types import AttributeValue

AnySpan: TypeAlias = "AbstractContextManager[Span]"
_NAME: Final = "uamp-server"
_PROPAGATOR: Final = TraceContextTextMapPropagator()
HEADERS: Final = ("traceparent", "tracestate")

_provider: TracerProvider | None = None


def configure(service: str) -> None:
    """Send spans by OTLP over HTTP, as set by the OTEL_… environment variables.

    Call it once in a process, after any fork, because a separate thread does the sending.
    """
    global _provider  # noqa: PLW0603 one exporter per process is the point
    if _provider is not None:
        return
    _provider = TracerProvider(resource=Resource.create({SERVICE_NAME: service}))
    # Not the global provider: spans of libraries could contain texts and keys.
    _provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))


def close() -> None:
    """Send what is left, blocking for some seconds at most; for the end of a process."""
    if _provider is not None:
        _provider.shutdown()


def is_on() -> bool:
    """Return whether this process records spans."""
    return _provider is not None


def carrier() -> dict[str, str]:
    """Return the current span as headers (W3C trace context) for another process, if any."""
    headers: dict[str, str] = {}
    if _provider is not None:
        _PROPAGATOR.inject(headers)
    return headers


def parent_of(headers: Mapping[str, str]) -> Context | None:
    """Return the span that headers name, as a parent."""
    if _provider is None or HEADERS[0] not in headers:
        return None
    return _PROPAGATOR.extract(dict(headers))


def current() -> Context | None:
    """Return the current span as the parent of one in another task."""
    return None if _provider is None else trace.set_span_in_context(trace.get_current_span())


@contextmanager
def span(
    name: str,
    *,
    kind: SpanKind = SpanKind.INTERNAL,
    parent: Context | None = None,
    attributes: Mapping[str, AttributeValue] | None = None,
) -> Iterator[Span]:
    """Record a span around the block; an exception marks it as failed, by its type alone."""
    if _provider is None:
        yield trace.INVALID_SPAN
        return
    tracer = _provider.get_tracer(_NAME)
    with tracer.start_as_current_span(
        name,
        context=parent,
        kind=kind,
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as made:
        try:
            yield made
        except BaseException as error:
            made.set_status(StatusCode.ERROR, type(error).__name__)
            raise
