"""Protocol errors by cause: this side's are raised, the peer's answered (UAMP §6.3, §6.8, §14.2).

A peer's mistake becomes one event with a code of ``uamp.errors.codes``.
"""

from typing import Any

from uamp.errors.codes import ErrorCode
from uamp.errors.table import ERROR_CODES
from uamp.events.server import ErrorDetail, ResponseError, SessionError


class ProtocolError(Exception):
    """Base class of the two protocol errors."""


class LocalProtocolError(ProtocolError):
    """This side attempted something that the protocol forbids: a bug here, not the peer's fault."""


class RemoteProtocolError(ProtocolError):
    """The peer violated the protocol; ``to_event`` returns the answer.

    ``event_id``, ``session_id`` and ``response_id`` are those of the offending event, if they were
    readable. ``fatal`` and ``close_code`` default to the code's row in the table: a fatal error
    closes the socket after its event. ``message`` is shown to the peer.
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
        # The type of the offending event, if it was readable.
        self.event_type: str | None = None
        self.fatal = row.fatal if fatal is None else fatal
        self.close_code = row.close_code if close_code is None else close_code

    def to_event(self) -> SessionError | ResponseError:
        """Return the event that reports the error; ``details.event_id`` names the peer's event."""
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
