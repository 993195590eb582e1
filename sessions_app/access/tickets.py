"""One-time tickets and client secrets, for pages that must not know their person's key.

`POST /api/v1/tickets`, with the key in a header or the cookie, returns a ticket, to be passed as
`?ticket=` in a handshake or stream. A ticket works once, within TICKET_SECONDS, and acts as the
principal that requested it: whatever ends that principal's connections (a revoked key, a sign-out)
ends the ticket's connection. It has the rights of the token that was shown, which may be fewer than
those of the key from which that token derives.

A client secret is a ticket for sessions of one agent, with the configuration set by its issuer.
Until it expires, it opens any number of sockets, in protocols that support client secrets, and
nothing else. Synchronous.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.utils import timezone

from agents_app.rest.rights import Rights
from sessions_app.models import Ticket, TicketKind

if TYPE_CHECKING:
    from sessions_app.access.principal import Principal

TICKET_SECONDS: Final = 30
BOUND_PREFIX: Final = "ek_"
_PREFIX: Final = "utk_"


class TooManyTickets(Exception):
    """The person has reached the limit of tickets or client secrets, which expire."""


def issue(principal: Principal) -> tuple[str, datetime]:
    """Return a new ticket for a person and its expiry.

    Raises TooManyTickets, and ValueError for visitors, who need none.
    """
    ticket = _PREFIX + secrets.token_urlsafe(32)
    return ticket, _write(
        ticket,
        principal,
        TicketKind.CONNECTION,
        seconds=TICKET_SECONDS,
        limit=settings.UAMP_TICKETS_PER_USER,
    )


def issue_secret(
    principal: Principal, *, agent: str, config: dict[str, Any], seconds: int
) -> tuple[str, datetime]:
    """Return a new client secret for sessions of an agent, and its expiry.

    Raises like `issue`.
    """
    secret = BOUND_PREFIX + secrets.token_urlsafe(32)
    return secret, _write(
        secret,
        principal,
        TicketKind.SESSIONS,
        seconds=seconds,
        limit=settings.UAMP_CLIENT_SECRETS_PER_USER,
        agent=agent,
        config=config,
    )


def _write(
    secret: str, principal: Principal, kind: TicketKind, *, seconds: int, limit: int, **bound: Any
) -> datetime:
    if principal.user_id is None:
        raise ValueError("a visitor needs no ticket")
    now = timezone.now()
    Ticket.objects.filter(expires_at__lte=now).delete()
    if Ticket.objects.filter(user_id=principal.user_id, kind=kind).count() >= limit:
        raise TooManyTickets
    row = Ticket.objects.create(
        sha256=_digest(secret),
        user_id=principal.user_id,
        api_key_id=principal.api_key_id,
        key_version=principal.key_version,
        web_session=principal.web_session,
        token=_token_of(principal),
        expires_at=now + timedelta(seconds=seconds),
        kind=kind,
        **bound,
    )
    return row.expires_at


def _token_of(principal: Principal) -> dict[str, Any]:
    """Return the limits of the credential with which a ticket is requested, as JSON."""
    rights = principal.rights
    only = {
        name: None if (ids := getattr(rights, name)) is None else sorted(ids)
        for name in ("chats", "agents", "protocols")
    }
    expires_at = principal.expires_at
    return {
        "scopes": sorted(rights.scopes),
        **only,
        "has_budget": rights.has_budget,
        "actors": principal.actors,
        "identity_id": principal.identity_id,
        "expires_at": None if expires_at is None else expires_at.timestamp(),
    }


def limited(principal: Principal, row: Ticket) -> Principal:
    """Return the principal of a ticket's key or account with the limits of the token behind it."""
    token = row.token
    if not token:
        return principal  # written by a process of the version before
    only = {
        name: None if token[name] is None else frozenset(token[name])
        for name in ("chats", "agents", "protocols")
    }
    rights = Rights(scopes=frozenset(token["scopes"]), has_budget=token["has_budget"], **only)
    ends = [] if principal.expires_at is None else [principal.expires_at]
    if token["expires_at"] is not None:
        ends.append(datetime.fromtimestamp(token["expires_at"], tz=UTC))
    return replace(
        principal,
        rights=rights.within(principal.rights),
        identity_id=token["identity_id"],
        actors=tuple((str(name), int(version)) for name, version in token["actors"]),
        expires_at=min(ends, default=None),
    )


def find_secret(secret: str) -> Ticket | None:
    """Return the row of a client secret, without deleting it; None if the secret is invalid."""
    row = _row_of(secret, TicketKind.SESSIONS)
    return row if row is not None and row.expires_at > timezone.now() else None


def use(ticket: str) -> Ticket | None:
    """Delete a ticket and return its row; None if it is invalid."""
    row = _row_of(ticket, TicketKind.CONNECTION)
    # Whichever connection deletes the row has used the ticket, so that only one can.
    if row is None or not Ticket.objects.filter(pk=row.pk).delete()[0]:
        return None
    return row if row.expires_at > timezone.now() else None


def _row_of(secret: str, kind: TicketKind) -> Ticket | None:
    rows = Ticket.objects.select_related("user", "api_key")
    return rows.filter(sha256=_digest(secret), kind=kind).first()


def _digest(ticket: str) -> str:
    return hashlib.sha256(ticket.encode("utf-8", "replace")).hexdigest()
