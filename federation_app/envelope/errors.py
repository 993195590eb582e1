"""Error codes (envelope §9), with the matching status of each transport.

The specification defines 4.01, 4.03, 4.09, 4.13 and 5.04. The others follow its style, because
invalid input must be refused before any of those applies.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, NamedTuple


class EnvelopeCode(StrEnum):
    """The error codes of envelopes; the value is the code on the wire."""

    MALFORMED = "4.00"
    UNAUTHENTICATED = "4.01"
    PAYMENT_REQUIRED = "4.02"
    UNAUTHORIZED = "4.03"
    NOT_FOUND = "4.04"
    CONFLICT = "4.09"
    TOO_LARGE = "4.13"
    UNSUPPORTED = "4.15"
    RATE_LIMITED = "4.29"
    INTERNAL = "5.00"
    BUSY = "5.04"


class CodeMeaning(NamedTuple):
    """The meaning of a code on each transport; `grpc` is the name of a gRPC status."""

    title: str
    http: int
    close: int
    grpc: str
    retry: bool


MEANINGS: Final[dict[EnvelopeCode, CodeMeaning]] = {
    EnvelopeCode.MALFORMED: CodeMeaning("Malformed", 400, 1007, "INVALID_ARGUMENT", retry=False),
    EnvelopeCode.UNAUTHENTICATED: CodeMeaning(
        "Unauthenticated", 401, 4401, "UNAUTHENTICATED", retry=False
    ),
    EnvelopeCode.PAYMENT_REQUIRED: CodeMeaning(
        "Payment required", 402, 4402, "FAILED_PRECONDITION", retry=False
    ),
    EnvelopeCode.UNAUTHORIZED: CodeMeaning(
        "Unauthorized", 403, 4403, "PERMISSION_DENIED", retry=False
    ),
    EnvelopeCode.NOT_FOUND: CodeMeaning("Not found", 404, 4404, "NOT_FOUND", retry=False),
    EnvelopeCode.CONFLICT: CodeMeaning("Conflict", 409, 4409, "ABORTED", retry=True),
    EnvelopeCode.TOO_LARGE: CodeMeaning(
        "Payload too large", 413, 1009, "RESOURCE_EXHAUSTED", retry=False
    ),
    EnvelopeCode.UNSUPPORTED: CodeMeaning("Unsupported", 415, 1003, "UNIMPLEMENTED", retry=False),
    EnvelopeCode.RATE_LIMITED: CodeMeaning(
        "Too many requests", 429, 4429, "RESOURCE_EXHAUSTED", retry=True
    ),
    EnvelopeCode.INTERNAL: CodeMeaning("Internal error", 500, 1011, "INTERNAL", retry=True),
    EnvelopeCode.BUSY: CodeMeaning("Backend busy", 503, 1013, "UNAVAILABLE", retry=True),
}


class EnvelopeError(Exception):
    """The refusal of an envelope, a delta or a manifest.

    `detail` is a word for programs, `retry_after` is in seconds (1 for 5.04 if not given),
    `expected` is the missing `delta_seq` (4.09), and `response_ids` are the responses of which a
    payment has to name one (4.09).
    """

    def __init__(
        self,
        code: EnvelopeCode,
        message: str,
        *,
        detail: str = "",
        retry_after: int | None = None,
        expected: int | None = None,
        response_ids: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.detail = detail
        if retry_after is None and code is EnvelopeCode.BUSY:
            retry_after = 1
        self.retry_after = retry_after
        self.expected = expected
        self.response_ids = response_ids

    @property
    def meaning(self) -> CodeMeaning:
        """The meaning of the code on each transport."""
        return MEANINGS[self.code]

    def payload(self) -> dict[str, Any]:
        """Return the payload of an `error` delta, or the body of an `error` envelope."""
        members = {
            "detail": self.detail,
            "retry_after": self.retry_after,
            "expected": self.expected,
            "response_ids": self.response_ids,
        }
        present = {name: value for name, value in members.items() if value not in {None, "", ()}}
        return {"code": self.code.value, "message": self.message, **present}


def malformed(message: str, *, detail: str = "") -> EnvelopeError:
    """Return the error for input that does not have the specified form."""
    return EnvelopeError(EnvelopeCode.MALFORMED, message, detail=detail)


def unauthenticated(message: str, *, detail: str = "") -> EnvelopeError:
    """Return the error for an invalid signature, key or token."""
    return EnvelopeError(EnvelopeCode.UNAUTHENTICATED, message, detail=detail)
