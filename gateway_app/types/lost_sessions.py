"""Why the server ended a session, for protocols that can report it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from uamp.events import Event

# Notices about a UAMP session that require nothing of another protocol's client.
_NOTICES: Final = frozenset({ErrorCode.TOKEN_EXPIRING, ErrorCode.RESYNC})


def lost_session(event: Event) -> RemoteProtocolError | None:
    """Return why the server ended a session; None for any other event."""
    match event:
        case ev.SessionError(error=error):
            # An error with the id of an event answers that event.
            answers = "event_id" in (error.details or {})
            if answers or error.code in _NOTICES:
                return None
            return RemoteProtocolError(ErrorCode(error.code), error.message)
        case ev.SessionEnd(reason="ended"):
            return RemoteProtocolError(ErrorCode.UNKNOWN_SESSION, "The session was ended.")
    return None
