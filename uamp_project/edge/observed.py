"""Observation of requests and sockets: an id in the log, metrics and a span.

The id is the client's own `X-Request-ID` if that consists of letters, digits and `._-`, or a new
one; every response carries it. It has no meaning to the server: a client that reuses one harms only
its own search through the log.
"""

from __future__ import annotations

import re
import time
import uuid
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final, Self

from telemetry import access_log, log_fields, metrics, span_attributes, spans

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from opentelemetry.trace import Span

    from uamp_project.edge.transports import Scope

HEADER: Final = b"x-request-id"
_GIVEN: Final = re.compile(rb"[\w.-]{1,64}", re.ASCII)
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class ObservedRequest:
    """One HTTP request, from its arrival to its end. Used by its own task only."""

    def __init__(self, scope: Scope) -> None:
        self.id = _id_of(scope)
        method = str(scope["method"])
        # Clients may send any method, and each would become a metric series.
        self._method = method if method in _METHODS else "other"
        self._began = time.monotonic()
        self._scope = scope
        self._span: Span | None = None
        self._access: access_log.Access | None = None
        self._inside = ExitStack()

    def __enter__(self) -> Self:
        self._inside.enter_context(log_fields.within(request_id=self.id))
        self._access = self._inside.enter_context(access_log.logged(self._method))
        self._span = self._inside.enter_context(_span(self._method, self._scope, self.id))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._inside.__exit__(kind, error, trace)

    def answered(
        self, status: int, headers: Sequence[tuple[bytes, bytes]]
    ) -> list[tuple[bytes, bytes]]:
        """Record the response; return additional headers for it."""
        if self._access is not None:
            self._access.status = status
        metrics.HTTP_REQUESTS.labels(self._method, f"{status // 100}xx").inc()
        metrics.HTTP_SECONDS.observe(time.monotonic() - self._began)
        if self._span is not None:
            self._span.set_attribute("http.response.status_code", status)
        if any(name.lower() == HEADER for name, _ in headers):
            return []
        return [(HEADER, self.id.encode())]


@contextmanager
def observed_socket(scope: Scope) -> Iterator[None]:
    """Add the id of a socket to its log lines."""
    with log_fields.within(request_id=_id_of(scope)), access_log.logged("SOCKET"):
        yield


def _span(method: str, scope: Scope, request_id: str) -> spans.AnySpan:
    headers = {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in scope["headers"]
        if name in (b"traceparent", b"tracestate")
    }
    return spans.span(
        f"{method} request",
        kind=spans.SpanKind.SERVER,
        parent=spans.parent_of(headers),
        attributes={
            "http.request.method": method,
            span_attributes.REQUEST_ID: request_id,
        },
    )


def _id_of(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == HEADER and _GIVEN.fullmatch(value):
            return str(value.decode())
    return uuid.uuid4().hex
