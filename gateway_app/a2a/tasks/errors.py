"""The errors of A2A: JSON-RPC codes, HTTP statuses and google.rpc reasons."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from uamp import ErrorCode, RemoteProtocolError
from uamp.errors.http_status import http_status

if TYPE_CHECKING:
    from collections.abc import Mapping

ERROR_INFO: Final = "type.googleapis.com/google.rpc.ErrorInfo"
DOMAIN: Final = "a2a-protocol.org"
_OWN_DOMAIN: Final = "uamp"
_SERVER_ERROR: Final = -32000
_OK: Final = 200


class TaskErrorReason(StrEnum):
    """The names of errors in A2A (A2A §5.4) and in JSON-RPC."""

    PARSE_ERROR = "PARSE_ERROR"
    INVALID_REQUEST = "INVALID_REQUEST"
    METHOD_NOT_FOUND = "METHOD_NOT_FOUND"
    INVALID_PARAMS = "INVALID_PARAMS"
    INTERNAL_ERROR = "INTERNAL_ERROR"
    TASK_NOT_FOUND = "TASK_NOT_FOUND"
    TASK_NOT_CANCELABLE = "TASK_NOT_CANCELABLE"
    PUSH_NOTIFICATION_NOT_SUPPORTED = "PUSH_NOTIFICATION_NOT_SUPPORTED"
    UNSUPPORTED_OPERATION = "UNSUPPORTED_OPERATION"
    CONTENT_TYPE_NOT_SUPPORTED = "CONTENT_TYPE_NOT_SUPPORTED"
    EXTENDED_AGENT_CARD_NOT_CONFIGURED = "EXTENDED_AGENT_CARD_NOT_CONFIGURED"
    VERSION_NOT_SUPPORTED = "VERSION_NOT_SUPPORTED"


_R = TaskErrorReason
# By reason: the JSON-RPC code, the HTTP status over REST, and the google.rpc status.
_TABLE: Final[dict[TaskErrorReason, tuple[int, int, str]]] = {
    _R.PARSE_ERROR: (-32700, 400, "INVALID_ARGUMENT"),
    _R.INVALID_REQUEST: (-32600, 400, "INVALID_ARGUMENT"),
    _R.METHOD_NOT_FOUND: (-32601, 404, "NOT_FOUND"),
    _R.INVALID_PARAMS: (-32602, 400, "INVALID_ARGUMENT"),
    _R.INTERNAL_ERROR: (-32603, 500, "INTERNAL"),
    _R.TASK_NOT_FOUND: (-32001, 404, "NOT_FOUND"),
    _R.TASK_NOT_CANCELABLE: (-32002, 409, "FAILED_PRECONDITION"),
    _R.PUSH_NOTIFICATION_NOT_SUPPORTED: (-32003, 400, "UNIMPLEMENTED"),
    _R.UNSUPPORTED_OPERATION: (-32004, 400, "UNIMPLEMENTED"),
    _R.CONTENT_TYPE_NOT_SUPPORTED: (-32005, 415, "INVALID_ARGUMENT"),
    _R.EXTENDED_AGENT_CARD_NOT_CONFIGURED: (-32007, 400, "FAILED_PRECONDITION"),
    _R.VERSION_NOT_SUPPORTED: (-32009, 400, "UNIMPLEMENTED"),
}
_REASONS: Final = {
    ErrorCode.INVALID_JSON: _R.PARSE_ERROR,
    ErrorCode.DUPLICATE_KEY: _R.PARSE_ERROR,
    ErrorCode.INVALID_NUMBER: _R.PARSE_ERROR,
    ErrorCode.INVALID_TEXT: _R.PARSE_ERROR,
    ErrorCode.UNKNOWN_CALL: _R.INVALID_PARAMS,
    ErrorCode.EVENT_ID_CONFLICT: _R.INVALID_PARAMS,
    ErrorCode.CONTENT_NOT_FOUND: _R.INVALID_PARAMS,
    ErrorCode.PAYMENT_NOT_DUE: _R.INVALID_PARAMS,
    ErrorCode.INVALID_MEDIA: _R.CONTENT_TYPE_NOT_SUPPORTED,
    ErrorCode.UNSUPPORTED_MODALITY: _R.CONTENT_TYPE_NOT_SUPPORTED,
    ErrorCode.NOTHING_TO_CANCEL: _R.TASK_NOT_CANCELABLE,
    ErrorCode.INTERNAL_ERROR: _R.INTERNAL_ERROR,
}
_GRPC: Final = {
    401: "UNAUTHENTICATED",
    402: "FAILED_PRECONDITION",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_BAD_REQUEST: Final = 400


class TaskRefused(Exception):
    """A request refused with one of A2A's errors; `message` is meant for people.

    `status` overrides the HTTP status of the reason.
    """

    def __init__(self, reason: TaskErrorReason, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.status = status


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskError:
    """An error as every A2A binding expresses it.

    `rpc_status` is the HTTP status that accompanies it over JSON-RPC.
    """

    code: int
    reason: str
    domain: str
    message: str
    http: int
    rpc_status: int
    grpc: str
    metadata: Mapping[str, str]

    def json_rpc(self) -> dict[str, Any]:
        """Return the `error` of a JSON-RPC response (A2A §9.5)."""
        return {"code": self.code, "message": self.message, "data": [self._info()]}

    def status(self) -> dict[str, Any]:
        """Return the body of a REST response: a google.rpc.Status (A2A §11.6)."""
        return {
            "error": {
                "code": self.http,
                "status": self.grpc,
                "message": self.message,
                "details": [self._info()],
            }
        }

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = {
            "@type": ERROR_INFO,
            "reason": self.reason,
            "domain": self.domain,
        }
        return {**info, "metadata": dict(self.metadata)} if self.metadata else info


def unpaid(body: Mapping[str, Any]) -> RemoteProtocolError:
    """Return the error of a turn that was not paid in full; `body` is that of a 402."""
    return RemoteProtocolError(ErrorCode.PAYMENT_REQUIRED, str(body.get("message", "")))


def error_of(error: TaskRefused | RemoteProtocolError) -> TaskError:
    """Convert an error of A2A or UAMP to A2A's terms.

    An error unknown to A2A keeps its UAMP code as the reason, and its HTTP status.
    """
    if isinstance(error, TaskRefused):
        task_error = _of_reason(error.reason, error.message, {})
        if error.status is None:
            return task_error
        grpc = _GRPC.get(error.status, "UNKNOWN")
        return replace(task_error, http=error.status, rpc_status=error.status, grpc=grpc)
    status = http_status(error.code)
    details = {name: str(value) for name, value in (error.details or {}).items()}
    metadata = {"code": str(error.code), **details}
    reason = _REASONS.get(error.code)
    if reason is None and status == _BAD_REQUEST:
        reason = _R.INVALID_PARAMS
    if reason is not None:
        return _of_reason(reason, error.message, metadata)
    return TaskError(
        code=_SERVER_ERROR,
        reason=str(error.code).upper(),
        domain=_OWN_DOMAIN,
        message=error.message,
        http=status,
        rpc_status=status,
        grpc=_GRPC.get(status, "UNKNOWN"),
        metadata=metadata,
    )


def _of_reason(reason: TaskErrorReason, message: str, metadata: Mapping[str, str]) -> TaskError:
    code, http, grpc = _TABLE[reason]
    return TaskError(
        code=code,
        reason=str(reason),
        domain=DOMAIN,
        message=message,
        http=http,
        rpc_status=_OK,
        grpc=grpc,
        metadata=metadata,
    )
