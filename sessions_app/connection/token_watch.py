"""When the tokens of a connection's sessions expire (UAMP §10.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from uamp import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from sessions_app.records import OpenSession

TOKEN_GRACE_SECONDS: Final = 60.0


class TokenWatch:
    """Finds sessions whose token expires or has expired; each token is warned of once.

    Only the periodic task of the process that looks at principals calls it.
    """

    def __init__(self) -> None:
        self._warned: dict[str, datetime] = {}

    def due(self, sessions: Collection[OpenSession], now: float) -> list[tuple[str, ErrorCode]]:
        """Return ids on the wire, with `token_expiring` or `token_expired`; `now` is Unix seconds.

        A token is expired for a session a minute after its end: until then the session may be
        given a new one, and is warned, also when the task came late.
        """
        found = []
        present = {session.id for session in sessions}
        self._warned = {id_: at for id_, at in self._warned.items() if id_ in present}
        for session in sessions:
            expires_at = session.principal.expires_at
            if expires_at is None:
                continue
            left = expires_at.timestamp() - now
            if left < -TOKEN_GRACE_SECONDS:
                found.append((session.wire_id, ErrorCode.TOKEN_EXPIRED))
            elif left < TOKEN_GRACE_SECONDS and self._warned.get(session.id) != expires_at:
                self._warned[session.id] = expires_at
                found.append((session.wire_id, ErrorCode.TOKEN_EXPIRING))
        return found
