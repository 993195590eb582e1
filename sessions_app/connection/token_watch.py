"""Expiry of the tokens of a connection's sessions (UAMP §10.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from uamp import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from sessions_app.records import OpenSession

TOKEN_GRACE_SECONDS: Final = 60.0


class TokenWatch:
    """Finds sessions whose tokens are expiring or expired; warns of each token once.

    Called only by the process's periodic check of principals.
    """

    def __init__(self) -> None:
        self._warned: dict[str, datetime] = {}

    def due(self, sessions: Collection[OpenSession], now: float) -> list[tuple[str, ErrorCode]]:
        """Return wire ids with `token_expiring` or `token_expired`; `now` is in Unix seconds.

        A session is ended only a minute after its token expires. Until then it can receive a new
        token and is still warned, even if the check runs late.
        """
        warnings = []
        present = {session.id for session in sessions}
        self._warned = {id_: at for id_, at in self._warned.items() if id_ in present}
        for session in sessions:
            expires_at = session.principal.expires_at
            if expires_at is None:
                continue
            seconds = expires_at.timestamp() - now
            if seconds < -TOKEN_GRACE_SECONDS:
                warnings.append((session.wire_id, ErrorCode.TOKEN_EXPIRED))
            elif seconds < TOKEN_GRACE_SECONDS and self._warned.get(session.id) != expires_at:
                self._warned[session.id] = expires_at
                warnings.append((session.wire_id, ErrorCode.TOKEN_EXPIRING))
        return warnings
