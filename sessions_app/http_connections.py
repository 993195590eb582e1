"""Connections that span HTTP requests to any process, and their unanswered requests.

A request is stored as a row until a stream of its connection sends the answer, so a stream that
opens later, or in another process, can still send it. Whichever stream deletes the row sends the
answer, so it is sent only once. Synchronous.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db import IntegrityError, transaction
from django.db.models import Case, Count, F, IntegerField, Q, Sum, When
from django.db.models.functions import Length
from django.utils import timezone

from sessions_app import selectors
from sessions_app.access.principal import PrincipalKind
from sessions_app.models import HttpConnection, UnansweredRequest

if TYPE_CHECKING:
    from datetime import datetime

    from sessions_app.access.principal import Principal

REQUESTS_PER_CONNECTION: Final = 64
"""How many requests of a connection may be unanswered at a time."""
KEPT_CHARS_PER_CONNECTION: Final = 8_000_000
"""How long the stored answers of a connection may be before it has to read them."""
KEPT_CHARS_PER_PRINCIPAL: Final = 4 * KEPT_CHARS_PER_CONNECTION
"""The same limit for all connections of a person, agent or peer, or of an address's visitors."""
SEEN_RESOLUTION: Final = timedelta(hours=1)


class TooManyRequests(Exception):
    """The connection has REQUESTS_PER_CONNECTION unanswered requests, or unread answers are long.

    Those may be the answers of the same principal's other connections.
    """


class RequestRepeated(Exception):
    """The connection already has an unanswered request with this id."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PendingAnswer:
    """An unanswered request: whether its answer is stored, or the response that answers it."""

    pk: int
    request_id: str
    response_id: str
    has_answer: bool
    created_at: datetime


def event_id_of(pk: int) -> str:
    """Return the event id for the turn that a request starts."""
    return f"http_{pk}"


def open_connection(principal: Principal, *, transport: str, agent: str) -> str:
    """Create a connection and return its id."""
    return HttpConnection.objects.create(
        principal=principal.key,
        counted_as=principal.counted_as,
        rights=principal.rights.digest,
        transport=transport,
        agent=agent,
    ).pk


def find_connection(
    connection_id: str, principal: Principal, *, transport: str, agent: str
) -> bool:
    """Return whether a connection belongs to the principal; visitors' match by id alone.

    A credential with rights that differ from those of the one that opened it does not match: it
    could read answers that it may not ask for, or have them sent to a stream that may not read
    them.
    """
    row = HttpConnection.objects.filter(pk=connection_id, transport=transport, agent=agent).first()
    if row is None:
        return False
    visitor = PrincipalKind.VISITOR.prefix
    is_visitors = principal.is_visitor and row.principal.startswith(visitor)
    if row.principal != principal.key and not is_visitors:
        return False
    if row.rights not in {"", principal.rights.digest}:
        return False
    now = timezone.now()
    if now - row.seen_at > SEEN_RESOLUTION:
        HttpConnection.objects.filter(pk=row.pk).update(seen_at=now)
    return True


def close_connection(connection_id: str) -> None:
    """Delete a connection and its unanswered requests; its sessions and responses continue."""
    HttpConnection.objects.filter(pk=connection_id).delete()


def add_request(connection_id: str, request_id: str, *, session_id: str | None) -> int:
    """Store a new request and return its row id; raises RequestRepeated or TooManyRequests."""
    if _waiting(connection_id) >= REQUESTS_PER_CONNECTION:
        raise TooManyRequests
    try:
        with transaction.atomic():
            row = UnansweredRequest.objects.create(
                connection_id=connection_id, request_id=request_id, session_id=session_id
            )
    except IntegrityError:
        raise RequestRepeated from None
    return row.pk


def keep_answer(pk: int, answer: str, *, is_refusal: bool = False) -> None:
    """Store the answer to a request for its stream to send.

    Raises TooManyRequests if other answers have used up the room since the request was added. There
    is always room for a refusal, which is short.
    """
    row = UnansweredRequest.objects.filter(pk=pk)
    connection_id = row.values_list("connection_id", flat=True).first()
    if connection_id is None:
        return
    if not is_refusal:
        _waiting(connection_id)
    row.update(answer=answer, answer_chars=len(answer))


def keep_response(pk: int, response_id: str) -> None:
    """Make the end of a response the answer to a request."""
    UnansweredRequest.objects.filter(pk=pk).update(response_id=response_id)


def pending_answers(connection_id: str, *, session_id: str | None) -> list[PendingAnswer] | None:
    """Return a stream's unanswered requests, oldest first; None if the connection is closed.

    If a process ended before it recorded a request's response, the response is found by the
    request's event id.
    """
    rows = UnansweredRequest.objects.filter(connection_id=connection_id, session_id=session_id)
    # Answers may be long: each is read by the stream that sends it.
    rows = rows.annotate(has_answer=~Q(answer="")).defer("answer")
    answers = [
        PendingAnswer(
            pk=row.pk,
            request_id=row.request_id,
            response_id=row.response_id or _begun(row),
            has_answer=row.has_answer,
            created_at=row.created_at,
        )
        for row in rows.order_by("pk")
    ]
    if not answers and not HttpConnection.objects.filter(pk=connection_id).exists():
        return None
    return answers


def take(pk: int) -> bool:
    """Delete a request; return whether this call deleted it and must therefore send the answer."""
    return bool(UnansweredRequest.objects.filter(pk=pk).delete()[0])


def take_answer(pk: int) -> str | None:
    """Delete a request and return its stored answer; None if another stream deleted it."""
    answer = UnansweredRequest.objects.filter(pk=pk).values_list("answer", flat=True).first()
    return answer if take(pk) else None


def _waiting(connection_id: str) -> int:
    """Count a connection's unanswered requests; raises TooManyRequests if its answers are long."""
    row = HttpConnection.objects.filter(pk=connection_id).only("counted_as", "principal").first()
    if row is None:
        return 0
    # Connections that an earlier release opened during an upgrade have only a principal.
    together = Q(connection__counted_as=row.counted_as)
    if not row.counted_as:
        together &= Q(connection__principal=row.principal)
    # Answers that it stored have no length.
    chars = Case(
        When(answer_chars=0, then=Length("answer")),
        default=F("answer_chars"),
        output_field=IntegerField(),
    )
    condition = Q(connection_id=connection_id)
    sums = UnansweredRequest.objects.filter(together).aggregate(
        waiting=Count("pk", filter=condition),
        kept=Sum(chars, filter=condition, default=0),
        kept_by_all=Sum(chars, default=0),
    )
    if sums["kept"] > KEPT_CHARS_PER_CONNECTION or sums["kept_by_all"] > KEPT_CHARS_PER_PRINCIPAL:
        raise TooManyRequests
    waiting: int = sums["waiting"]
    return waiting


def _begun(row: Any) -> str:
    if row.has_answer or row.session_id is None:
        return ""
    begun = selectors.responses_started_by(row.session_id, event_id_of(row.pk))
    return next(iter(begun), "")
