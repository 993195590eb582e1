"""Sessions that connections take, hold and let go of, and their end (UAMP §5.3, §10).

The row of a session is active only while a connection holds it. A socket that ends releases its
sessions at once; for a process that died the tick of another one does.
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
"""A session that no process says it holds for this long has lost its connection with its process;
processes say it every minute (`process.periodic.TOUCH_SECONDS`)."""


def close_session(session_id: str, *, reason: str) -> bool:
    """End a session, and return whether this call did; what it asked for goes on."""
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
    """Make a session active: the connection `held_by` has it now.

    Raises TransitionRefused for one that is closed or gone.
    """
    move_one(
        Session.objects.filter(pk=session_id),
        SessionTrigger.ATTACH,
        held_by=held_by,
        seen_at=timezone.now(),
    )


def session_like(session: Session) -> Session:
    """Open a session of the same person in the same chat as one that has ended."""
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
    """Keep an ephemeral session, whose id was named again; return whether it is still there."""
    return bool(Session.objects.filter(pk=session_id).update(ephemeral=False))


def release_sessions(session_ids: Collection[str], *, held_by: str) -> None:
    """Make the sessions idle that the connection `held_by` was the last to take; others stay."""
    move(
        Session.objects.filter(pk__in=session_ids, held_by=held_by),
        SessionTrigger.DETACH,
        held_by="",
        seen_at=timezone.now(),
    )


def touch_sessions(session_ids: Collection[str], *, now: datetime) -> None:
    """Keep the sessions active that connections of this process hold, and let go of the rest.

    One whose process died becomes idle, and one that was idle for long is closed.
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
