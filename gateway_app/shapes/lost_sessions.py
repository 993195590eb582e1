"""Why a session ended without its client, for protocols that have an event or an error for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from uamp.events import Event

# Notices about a session of UAMP that ask nothing of a client of another protocol.
_NOTICES: Final = frozenset({ErrorCode.TOKEN_EXPIRING, ErrorCode.RESYNC})


def lost_session(event: Event) -> RemoteProtocolError | None:
    """Return why a session ended without its client; None for an event of another kind."""
    match event:
        case ev.SessionError(error=error):
            # With the id of an event it answers that.
            answers = "event_id" in (error.details or {})
            if answers or error.code in _NOTICES:
                return None
            return RemoteProtocolError(ErrorCode(error.code), error.message)
        case ev.SessionEnd(reason="ended"):
            return RemoteProtocolError(ErrorCode.UNKNOWN_SESSION, "The session was ended.")
    return None
