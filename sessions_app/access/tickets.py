"""One-time tickets: a program or page opens a connection without its key in the URL.

`POST /api/v1/tickets`, with the key in a header or with the cookie, gives a ticket; `?ticket=` on
a handshake or a stream takes it. A ticket works once, for TICKET_SECONDS, and as the principal that
asked for it: what ends that principal's connections (a revoked key, a logout) ends this one's.
Synchronous.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.utils import timezone

from sessions_app.models import Ticket

if TYPE_CHECKING:
    from datetime import datetime

    from sessions_app.access.principal import Principal

TICKET_SECONDS: Final = 30
TICKETS_PER_PERSON: Final = 50
"""Tickets of one person that may wait to be used."""
_PREFIX: Final = "utk_"


class TooManyTickets(Exception):
    """The person has TICKETS_PER_PERSON tickets that wait; they expire within TICKET_SECONDS."""


def issue(principal: Principal) -> tuple[str, datetime]:
    """Return a new ticket for a person, and when it expires.

    Raises TooManyTickets, and ValueError for a visitor, who needs none.
    """
    if principal.user_id is None:
        raise ValueError("a visitor needs no ticket")
    now = timezone.now()
    Ticket.objects.filter(expires_at__lte=now).delete()
    if Ticket.objects.filter(user_id=principal.user_id).count() >= TICKETS_PER_PERSON:
        raise TooManyTickets
    ticket = _PREFIX + secrets.token_urlsafe(32)
    row = Ticket.objects.create(
        sha256=_digest(ticket),
        user_id=principal.user_id,
        api_key_id=principal.api_key_id,
        web_session=principal.web_session,
        expires_at=now + timedelta(seconds=TICKET_SECONDS),
    )
    return ticket, row.expires_at


def use(ticket: str) -> Ticket | None:
    """Use a ticket up and return its row, which is deleted; None for one that is not good."""
    row = Ticket.objects.select_related("user", "api_key").filter(sha256=_digest(ticket)).first()
    # The connection that deletes the row has used the ticket: of two at once only one does.
    if row is None or not Ticket.objects.filter(pk=row.pk).delete()[0]:
        return None
    return row if row.expires_at > timezone.now() else None


def _digest(ticket: str) -> str:
    return hashlib.sha256(ticket.encode("utf-8", "replace")).hexdigest()
