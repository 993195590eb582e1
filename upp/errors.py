"""One error type for all failures of a model provider (UPP-1.3 §4.4).

An error has a code that callers may branch on. Its message may contain a provider's text, so it is
for logs and operators and must not be shown to users unchanged. It never contains keys (§17.1).
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
    """Return the code for a provider's HTTP status; PROVIDER_ERROR for unlisted ones."""
    return _CODE_OF_STATUS.get(status, ErrorCode.PROVIDER_ERROR)


class UPPError(Exception):
    """A failed model call, with its code, provider and, if known, retry time.

    `status_code` is the provider's HTTP status, `request_id` its id of the request, or "";
    `retry_after` is in seconds. `earlier` are the errors of the attempts before this one.
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
        request_id: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.provider = provider
        self.modality = modality
        self.status_code = status_code
        self.retry_after = retry_after
        self.request_id = request_id
        self.earlier: tuple[UPPError, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors are sent between processes, and Exception pickles only its message.
        return _remade, (type(self), self.message, {**vars(self)})

    def to_json(self) -> dict[str, Any]:
        """Return the JSON shape of UPP-1.3 §4.4, without empty members."""
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
    """The model needed another tool round after `max_iterations` (INVALID_REQUEST)."""
