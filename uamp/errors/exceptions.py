"""Errors by their cause: this side's are raised, the peer's are answered (UAMP §6.3, §6.8, §14.2).

A peer's mistake becomes one event under a code of ``uamp.errors.codes``.
"""

from typing import Any

from uamp.errors.codes import ErrorCode
from uamp.errors.table import ERROR_CODES
from uamp.events.server import ErrorDetail, ResponseError, SessionError


class ProtocolError(Exception):
    """Base of the two errors below."""


class LocalProtocolError(ProtocolError):
    """This side tried what the protocol forbids: a defect here, not the peer's fault."""


class RemoteProtocolError(ProtocolError):
    """The peer did what the protocol forbids; ``to_event`` is the answer.

    ``event_id``, ``session_id`` and ``response_id`` are those of the offending event, where they
    were readable. ``fatal`` and ``close_code`` come from the code's row unless given: a fatal
    error closes the socket after its event. ``message`` is shown to the peer.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        event_id: str | None = None,
        session_id: str | None = None,
        response_id: str | None = None,
        details: dict[str, Any] | None = None,
        fatal: bool | None = None,
        close_code: int | None = None,
    ) -> None:
        row = ERROR_CODES[code]
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.event_id = event_id
        self.session_id = session_id
        self.response_id = response_id
        self.details = details
        # The type of the offending event, where it was readable.
        self.event_type: str | None = None
        self.fatal = row.fatal if fatal is None else fatal
        self.close_code = row.close_code if close_code is None else close_code

    def to_event(self) -> SessionError | ResponseError:
        """Return the event that answers the peer; ``details.event_id`` names its event."""
        details = dict(self.details or {})
        if self.event_id is not None:
            details["event_id"] = self.event_id
        error = ErrorDetail(code=str(self.code), message=self.message, details=details or None)
        event = ERROR_CODES[self.code].event
        if event == "response.error" or (
            "response.error" in event and self.response_id is not None
        ):
            return ResponseError(
                session_id=self.session_id, response_id=self.response_id, error=error
            )
        return SessionError(session_id=self.session_id, error=error)
