"""Attaching, holding, releasing and ending sessions (UAMP §5.3, §10).

A session is active only while a connection holds it. A socket releases its sessions as soon as it
closes; after a crash, another process's tick releases them.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from sessions_app.models import PendingInput, Session
from sessions_app.transitions import move, move_one
from uamp import SessionState, SessionTrigger

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

LET_GO_SECONDS: Final = 150.0
"""Seconds without a touch after which a session has lost its process and connection.

Processes touch their sessions every minute (`process.periodic.TOUCH_SECONDS`).
"""


def close_session(session_id: str, *, reason: str) -> bool:
    """End a session and return whether this call ended it; its requests keep running."""
    with transaction.atomic():
        ended = move(
            Session.objects.filter(pk=session_id),
            SessionTrigger.END,
            closed_at=timezone.now(),
            close_reason=reason[:100],
        )
        PendingInput.objects.filter(session_id=session_id).delete()
    return bool(ended)


def hold_session(session_id: str, *, held_by: str) -> None:
    """Make a session active: the connection `held_by` now holds it.

    Raises TransitionRefused if it is closed or deleted.
    """
    move_one(
        Session.objects.filter(pk=session_id),
        SessionTrigger.ATTACH,
        held_by=held_by,
        seen_at=timezone.now(),
    )


def session_like(session: Session) -> Session:
    """Open a session for the same person and chat as a session that has ended."""
    return Session.objects.create(
        user_id=session.user_id,
        principal=session.principal,
        chat=session.chat,
        chat_scoped=True,
        transport=session.transport,
        uamp_version=session.uamp_version,
        config=session.config,
        payment_token_id=session.payment_token_id,
    )


def keep_session(session_id: str) -> bool:
    """Make an ephemeral session permanent; return whether it still exists."""
    return bool(Session.objects.filter(pk=session_id).update(ephemeral=False))


def release_sessions(session_ids: Collection[str], *, held_by: str) -> None:
    """Make sessions idle that `held_by` was the last connection to attach to."""
    move(
        Session.objects.filter(pk__in=session_ids, held_by=held_by),
        SessionTrigger.DETACH,
        held_by="",
        seen_at=timezone.now(),
    )


def touch_sessions(session_ids: Collection[str], *, now: datetime) -> None:
    """Keep this process's sessions active, release lost ones and close idle ones.

    A session is lost if its process died; one that has been idle for too long is closed.
    """
    move(Session.objects.filter(pk__in=session_ids), SessionTrigger.ATTACH, seen_at=now)
    lost = now - timedelta(seconds=LET_GO_SECONDS)
    move(Session.objects.filter(seen_at__lt=lost), SessionTrigger.DETACH, held_by="")
    idle = now - timedelta(hours=settings.UAMP_SESSION_IDLE_HOURS)
    move(
        Session.objects.filter(status=SessionState.IDLE, seen_at__lt=idle),
        SessionTrigger.END,
        closed_at=now,
        close_reason="timeout",
    )
