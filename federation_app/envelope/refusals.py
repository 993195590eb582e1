"""Maps the cause of a peer's 4.04 to an error code of UAMP. Pure: it does no I/O."""

from __future__ import annotations

from typing import Any, Final

from federation_app.envelope.errors import MEANINGS, EnvelopeCode
from uamp import ErrorCode
from uamp.errors.http_status import http_status

_WORD_CHARS: Final = 40
# The words of this server's own refusals; to its home, a guest that it does not know is no member.
_WORDS: Final = {
    "agent": ErrorCode.AGENT_NOT_FOUND,
    "by": ErrorCode.CHAT_NOT_FOUND,
    "chat": ErrorCode.CHAT_NOT_FOUND,
    "file": ErrorCode.CONTENT_NOT_FOUND,
    "message": ErrorCode.MESSAGE_NOT_FOUND,
}
_CODES: Final = {
    code.value: code
    for code in ErrorCode
    if http_status(code) == MEANINGS[EnvelopeCode.NOT_FOUND].http
}


def cause_of(refusal: dict[str, Any]) -> str:
    """Return the word for the cause of a refusal; "" if it names none.

    It is the `reason` of a problem document, and the `detail` of a delta or an envelope.
    """
    word = refusal["reason"] if "reason" in refusal else refusal.get("detail")
    return word if isinstance(word, str) and len(word) <= _WORD_CHARS else ""


def missing(cause: str) -> ErrorCode | None:
    """Return the code for what a 4.04 with this cause says is missing; None if it is unclear."""
    return _WORDS.get(cause) or _CODES.get(cause)
