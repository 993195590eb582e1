"""Connections over several HTTP requests, which any process serves, and their unanswered requests.

A request is a row until a stream of its connection sends its answer, so that a stream that opens
late, or in another process, sends it too. Who deletes the row sends the answer: of two streams one
does. Synchronous.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.db import IntegrityError, transaction
from django.utils import timezone

from sessions_app import selectors
from sessions_app.access.principal import PrincipalKind
from sessions_app.models import HttpConnection, UnansweredRequest

if TYPE_CHECKING:
    from datetime import datetime

    from sessions_app.access.principal import Principal

REQUESTS_PER_CONNECTION: Final = 64
"""Requests of one connection that may wait for their answers."""
SEEN_RESOLUTION: Final = timedelta(hours=1)


class TooManyRequests(Exception):
    """The connection has REQUESTS_PER_CONNECTION requests without an answer."""


class RequestRepeated(Exception):
    """The connection has a request of this id without an answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OwedAnswer:
    """A request without an answer: what is ready of it, or the response that answers it."""

    pk: int
    request_id: str
    response_id: str
    answer: str
    created_at: datetime


def event_id_of(pk: int) -> str:
    """Return the event id under which a request begins its turn."""
    return f"http_{pk}"


def open_connection(principal: Principal, *, transport: str, agent: str) -> str:
    """Return the id of a new connection."""
    return HttpConnection.objects.create(
        principal=principal.key, transport=transport, agent=agent
    ).pk


def find_connection(
    connection_id: str, principal: Principal, *, transport: str, agent: str
) -> bool:
    """Return whether a connection is this principal's, or a visitor's by its id."""
    row = HttpConnection.objects.filter(pk=connection_id, transport=transport, agent=agent).first()
    if row is None:
        return False
    visitor = PrincipalKind.VISITOR.prefix
    is_visitors = principal.is_visitor and row.principal.startswith(visitor)
    if row.principal != principal.key and not is_visitors:
        return False
    now = timezone.now()
    if now - row.seen_at > SEEN_RESOLUTION:
        HttpConnection.objects.filter(pk=row.pk).update(seen_at=now)
    return True


def close_connection(connection_id: str) -> None:
    """Delete a connection with its unanswered requests; its sessions and responses go on."""
    HttpConnection.objects.filter(pk=connection_id).delete()


def add_request(connection_id: str, request_id: str, *, session_id: str | None) -> int:
    """Return the row of a new request; raises RequestRepeated and TooManyRequests."""
    waiting = UnansweredRequest.objects.filter(connection_id=connection_id)
    if waiting.count() >= REQUESTS_PER_CONNECTION:
        raise TooManyRequests
    try:
        with transaction.atomic():
            row = UnansweredRequest.objects.create(
                connection_id=connection_id, request_id=request_id, session_id=session_id
            )
    except IntegrityError:
        raise RequestRepeated from None
    return row.pk


def keep_answer(pk: int, answer: str) -> None:
    """Keep the answer to a request for its stream."""
    UnansweredRequest.objects.filter(pk=pk).update(answer=answer)


def keep_response(pk: int, response_id: str) -> None:
    """Let the end of a response be the answer to a request."""
    UnansweredRequest.objects.filter(pk=pk).update(response_id=response_id)


def owed_answers(connection_id: str, *, session_id: str | None) -> list[OwedAnswer] | None:
    """Return what a stream has to answer, oldest first; None where the connection was closed.

    The response of a request whose process ended before it wrote that is the one of its event.
    """
    rows = UnansweredRequest.objects.filter(connection_id=connection_id, session_id=session_id)
    found = [
        OwedAnswer(
            pk=row.pk,
            request_id=row.request_id,
            response_id=row.response_id or _begun(row),
            answer=row.answer,
            created_at=row.created_at,
        )
        for row in rows.order_by("pk")
    ]
    if not found and not HttpConnection.objects.filter(pk=connection_id).exists():
        return None
    return found


def take(pk: int) -> bool:
    """Delete a request; return whether this call did, and so sends its answer."""
    return bool(UnansweredRequest.objects.filter(pk=pk).delete()[0])


def _begun(row: UnansweredRequest) -> str:
    if row.answer or row.session_id is None:
        return ""
    begun = selectors.responses_started_by(row.session_id, event_id_of(row.pk))
    return next(iter(begun), "")
