"""The entries of the table of errors for each code, and the texts that several rows share."""

import msgspec

from uamp.errors.codes import ErrorCode

SESSION = "session.error"
RESPONSE = "response.error"
EITHER = "session.error | response.error"
FIX = "Correct the frame and send it again; the connection stays open."
SMALLER = "Send less, or upload the file and send its URL."


class ErrorRow(msgspec.Struct, frozen=True):
    """One code: the event that carries it, when it is sent, and what its recipient should do.

    ``event`` is session.error, response.error, or both, "session.error | response.error": then the
    error of a known response is a response.error. If ``fatal``, the socket is closed with
    ``close_code`` after the event.
    """

    code: ErrorCode
    event: str
    when: str
    what_to_do: str
    fatal: bool = False
    close_code: int | None = None
