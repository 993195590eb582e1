"""The HTTP status of each error code, for transports over HTTP."""

from typing import Final

from uamp.errors.codes import ErrorCode

_STATUSES: Final = {
    ErrorCode.UNAUTHORIZED: 401,
    ErrorCode.TOKEN_EXPIRED: 401,
    ErrorCode.FORBIDDEN: 403,
    ErrorCode.FORBIDDEN_ROLE: 403,
    ErrorCode.AGENT_NOT_FOUND: 404,
    ErrorCode.AGENT_DISABLED: 404,
    ErrorCode.CHAT_NOT_FOUND: 404,
    ErrorCode.MESSAGE_NOT_FOUND: 404,
    ErrorCode.UNKNOWN_SESSION: 404,
    ErrorCode.UNKNOWN_CALL: 404,
    ErrorCode.CONTENT_NOT_FOUND: 404,
    ErrorCode.CALL_NOT_FOUND: 404,
    ErrorCode.NOTHING_TO_CANCEL: 409,
    ErrorCode.EVENT_ID_CONFLICT: 409,
    ErrorCode.SESSION_EXISTS: 409,
    ErrorCode.STATE_CONFLICT: 409,
    ErrorCode.MESSAGE_CONFLICT: 409,
    ErrorCode.CALL_RUNNING: 409,
    ErrorCode.CALL_FULL: 409,
    ErrorCode.NOT_IN_CALL: 409,
    ErrorCode.FRAME_TOO_LARGE: 413,
    ErrorCode.QUOTA_EXCEEDED: 413,
    ErrorCode.RATE_LIMITED: 429,
    ErrorCode.QUEUE_FULL: 429,
    ErrorCode.BUSY: 503,
    ErrorCode.UNAVAILABLE: 503,
    ErrorCode.INTERNAL_ERROR: 500,
    # For responses: if a transport answers with the whole response, its failure has a status.
    ErrorCode.PAYMENT_REQUIRED: 402,
    ErrorCode.PAYMENT_TIMEOUT: 402,
    ErrorCode.RATE_LIMIT_EXCEEDED: 429,
    ErrorCode.PROVIDER_ERROR: 502,
    ErrorCode.INVALID_OUTPUT: 502,
    ErrorCode.AGENT_OFFLINE: 503,
    ErrorCode.INTERRUPTED: 503,
    ErrorCode.TIMEOUT: 504,
}
_CLOSE_CODES_FROM: Final = 4000


def http_status(code: ErrorCode) -> int:
    """Return the HTTP status of an error code; 400 for errors without a status of their own."""
    return _STATUSES.get(code, 400)


def close_code(code: ErrorCode) -> int:
    """Return the WebSocket close code of a refusal: 4000 plus the HTTP status, such as 4404."""
    return _CLOSE_CODES_FROM + http_status(code)
