"""Reads of a principal's open sessions over one transport, for returning clients.

Each needs the right to read chats, and finds the sessions of chats that the person is in now and
the credential is for. Synchronous. A visitor's sessions are only found by id and never listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Q

from chat_app.members.chat_lists import chats_of
from sessions_app.access.protocol_rights import check_scope
from sessions_app.models import Session

if TYPE_CHECKING:
    from datetime import datetime

    from sessions_app.access.principal import Principal


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredSession:
    """An open session; `id` is its id on the wire, `row_id` its position in a list."""

    id: str
    row_id: str
    extensions: dict[str, Any]
    title: str
    created_at: datetime
    seen_at: datetime


def list_sessions(
    principal: Principal,
    *,
    transport: str,
    agent: str | None,
    limit: int,
    before: tuple[datetime, str] | None = None,
) -> list[StoredSession]:
    """Return a principal's open sessions, newest first; visitors get none.

    Raises RemoteProtocolError forbidden.
    """
    check_scope(principal, "chats:read")
    if principal.is_visitor:
        return []
    rows = Session.objects.filter(
        principal=principal.key, transport=transport, status__in=Session.OPEN
    )
    if principal.user_id is not None:
        rows = rows.filter(chat__in=chats_of(principal.user_id).values("pk"))
    if principal.rights.chats is not None:
        rows = rows.filter(chat_id__in=principal.rights.chats)
    if agent is not None:
        rows = rows.filter(agent__name__iexact=agent)
    if before is not None:
        at, pk = before
        rows = rows.filter(Q(created_at__lt=at) | Q(created_at=at, pk__lt=pk))
    return [
        StoredSession(
            id=row.wire_id,
            row_id=row.pk,
            extensions=row.config.get("extensions") or {},
            title=row.chat.title,
            created_at=row.created_at,
            seen_at=row.seen_at,
        )
        for row in rows.select_related("chat").order_by("-created_at", "-pk")[:limit]
    ]
