"""One-time tickets and client secrets: a page opens a connection without the key of its person.

`POST /api/v1/tickets`, with the key in a header or with the cookie, gives a ticket; `?ticket=` on
a handshake or a stream takes it. A ticket works once, for TICKET_SECONDS, and as the principal that
asked for it: what ends that principal's connections (a revoked key, a logout) ends this one's.

A client secret is a ticket for the sessions of one agent, with the configuration that its issuer
gave them: it opens sockets of a protocol that takes client secrets, any number until it expires,
and nothing else. Synchronous.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.utils import timezone

from sessions_app.models import Ticket, TicketKind

if TYPE_CHECKING:
    from datetime import datetime

    from sessions_app.access.principal import Principal

TICKET_SECONDS: Final = 30
BOUND_PREFIX: Final = "ek_"
_PREFIX: Final = "utk_"


class TooManyTickets(Exception):
    """The person has as many tickets, or client secrets, as one may have; they expire."""


def issue(principal: Principal) -> tuple[str, datetime]:
    """Return a new ticket for a person, and when it expires.

    Raises TooManyTickets, and ValueError for a visitor, who needs none.
    """
    ticket = _PREFIX + secrets.token_urlsafe(32)
    return ticket, _write(
        ticket,
        principal,
        TicketKind.CONNECTION,
        seconds=TICKET_SECONDS,
        most=settings.UAMP_TICKETS_PER_USER,
    )


def issue_secret(
    principal: Principal, *, agent: str, config: dict[str, Any], seconds: int
) -> tuple[str, datetime]:
    """Return a new client secret of a person for the sessions of an agent, and when it expires.

    Raises like `issue`.
    """
    secret = BOUND_PREFIX + secrets.token_urlsafe(32)
    return secret, _write(
        secret,
        principal,
        TicketKind.SESSIONS,
        seconds=seconds,
        most=settings.UAMP_CLIENT_SECRETS_PER_USER,
        agent=agent,
        config=config,
    )


def _write(
    secret: str, principal: Principal, kind: TicketKind, *, seconds: int, most: int, **bound: Any
) -> datetime:
    if principal.user_id is None:
        raise ValueError("a visitor needs no ticket")
    now = timezone.now()
    Ticket.objects.filter(expires_at__lte=now).delete()
    if Ticket.objects.filter(user_id=principal.user_id, kind=kind).count() >= most:
        raise TooManyTickets
    row = Ticket.objects.create(
        sha256=_digest(secret),
        user_id=principal.user_id,
        api_key_id=principal.api_key_id,
        web_session=principal.web_session,
        expires_at=now + timedelta(seconds=seconds),
        kind=kind,
        **bound,
    )
    return row.expires_at


def find_secret(secret: str) -> Ticket | None:
    """Return the row of a client secret, which it leaves; None for one that is not good."""
    row = _row_of(secret, TicketKind.SESSIONS)
    return row if row is not None and row.expires_at > timezone.now() else None


def use(ticket: str) -> Ticket | None:
    """Delete a ticket and return its row; None for an invalid one."""
    row = _row_of(ticket, TicketKind.CONNECTION)
    # The connection that deletes the row has used the ticket: of two at once only one does.
    if row is None or not Ticket.objects.filter(pk=row.pk).delete()[0]:
        return None
    return row if row.expires_at > timezone.now() else None


def _row_of(secret: str, kind: TicketKind) -> Ticket | None:
    rows = Ticket.objects.select_related("user", "api_key")
    return rows.filter(sha256=_digest(secret), kind=kind).first()


def _digest(ticket: str) -> str:
    return hashlib.sha256(ticket.encode("utf-8", "replace")).hexdigest()
