"""One error for everything that a model provider can do wrong (UPP-1.3 §4.4).

An error names a code that callers may branch on; its message may hold provider text, so it
is for logs and for operators, and never goes to a user as it is. Keys never appear in it (§17.1).
"""

from enum import StrEnum
from typing import Any


class ErrorCode(StrEnum):
    """The twelve codes of UPP-1.3 §4.4."""

    AUTHENTICATION_FAILED = "AUTHENTICATION_FAILED"
    RATE_LIMITED = "RATE_LIMITED"
    CONTEXT_LENGTH_EXCEEDED = "CONTEXT_LENGTH_EXCEEDED"
    MODEL_NOT_FOUND = "MODEL_NOT_FOUND"
    INVALID_REQUEST = "INVALID_REQUEST"
    INVALID_RESPONSE = "INVALID_RESPONSE"
    CONTENT_FILTERED = "CONTENT_FILTERED"
    QUOTA_EXCEEDED = "QUOTA_EXCEEDED"
    PROVIDER_ERROR = "PROVIDER_ERROR"
    NETWORK_ERROR = "NETWORK_ERROR"
    TIMEOUT = "TIMEOUT"
    CANCELLED = "CANCELLED"


_CODE_OF_STATUS = {
    400: ErrorCode.INVALID_REQUEST,
    401: ErrorCode.AUTHENTICATION_FAILED,
    402: ErrorCode.QUOTA_EXCEEDED,
    403: ErrorCode.AUTHENTICATION_FAILED,
    404: ErrorCode.MODEL_NOT_FOUND,
    408: ErrorCode.TIMEOUT,
    409: ErrorCode.INVALID_REQUEST,
    413: ErrorCode.CONTEXT_LENGTH_EXCEEDED,
    422: ErrorCode.INVALID_REQUEST,
    429: ErrorCode.RATE_LIMITED,
    451: ErrorCode.CONTENT_FILTERED,
}


def code_for_status(status: int) -> ErrorCode:
    """Return the code for an HTTP status of a provider; everything unnamed is PROVIDER_ERROR."""
    return _CODE_OF_STATUS.get(status, ErrorCode.PROVIDER_ERROR)


class UPPError(Exception):
    """A failure of a model call, with code, provider and, where known, retry time.

    `status_code` is the provider's HTTP status, `retry_after` is in seconds.
    """

    def __init__(
        self,
        message: str,
        *,
        code: ErrorCode,
        provider: str = "",
        modality: str = "llm",
        status_code: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.provider = provider
        self.modality = modality
        self.status_code = status_code
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors are sent between processes, and Exception only remembers its message.
        return _remade, (type(self), self.message, {**vars(self)})

    def to_json(self) -> dict[str, Any]:
        """Return the JSON shape of UPP-1.3 §4.4; members without a value are left out."""
        cause = str(self.__cause__) if self.__cause__ is not None else None
        shape = {
            "name": "UPPError",
            "message": self.message,
            "code": self.code.value,
            "provider": self.provider,
            "modality": self.modality,
            "statusCode": self.status_code,
            "cause": cause,
        }
        return {name: value for name, value in shape.items() if value is not None}


def _remade(kind: type[UPPError], message: str, members: dict[str, Any]) -> UPPError:
    error = kind(message, code=members["code"])
    vars(error).update(members)
    return error


class TooManyRoundsError(UPPError):
    """The model wanted one more tool round than `max_iterations` allows (INVALID_REQUEST)."""
