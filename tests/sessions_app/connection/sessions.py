"""An open session that has no row."""

from __future__ import annotations

from django.utils import timezone

import uamp
from sessions_app.access import auth
from sessions_app.records import OpenSession


def open_session(
    *, chat_id: str = "chat_1", last_seq: int = 0, names_chat: bool = True
) -> OpenSession:
    """Return a visitor's session, which follows the whole chat where it named one."""
    return OpenSession(
        id="sess_1",
        principal=auth.anonymous(),
        chat_id=chat_id,
        chat_kind="group",
        chat_scoped=names_chat,
        epoch="epoch",
        last_seq=last_seq,
        opened_seq=0,
        agent_id=None,
        agent_name=None,
        config=uamp.SessionConfig(),
        created_at=timezone.now(),
        transport="websocket",
    )
