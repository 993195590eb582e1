"""The client's errors, as exceptions by cause (UAMP §6.3, §6.8, §7.2; RFC 9457).

Each has the code and message that the server sent, and what the caller can do about it.
"""

from collections.abc import Mapping
from typing import Any

from uamp.errors import ErrorCode
from uamp.errors.table import ERROR_CODES
from uamp.events import ErrorDetail


class ClientError(Exception):
    """Base class of all errors of the client.

    ``code`` is from the protocol, from a problem document, or one of this client's own. ``details``
    are for programs. ``what_to_do`` is a sentence for people, empty if no remedy is known.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "client_error",
        details: Mapping[str, Any] | None = None,
        what_to_do: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.details = dict(details or {})
        self.what_to_do = what_to_do or _remedy(code, self.retry_after)

    @property
    def retry_after(self) -> float | None:
        """Seconds until the server accepts the same request again; None if unknown."""
        wait = self.details.get("retry_after")
        return float(wait) if isinstance(wait, int | float) else None


class InvalidRequestError(ClientError):
    """The server does not accept the request as it is; repeating it does not help."""


class UnauthorizedError(ClientError):
    """The key is missing, unknown, revoked or expired."""


class NotPermittedError(ClientError):
    """The key is valid, but does not permit this."""


class NotFoundError(ClientError):
    """The chat, agent, message, file or person does not exist, or the caller may not see it."""


class ConflictError(ClientError):
    """Another request has changed it in the meantime."""


class RateLimitError(ClientError):
    """Too many requests, or too much is stored: ``retry_after`` says when to retry."""


class UnavailableError(ClientError):
    """The server, the agent or its model cannot answer at the moment."""


class ConnectionLostError(ClientError):
    """The server could not be reached within the client's time limit."""

    def __init__(self, message: str, *, what_to_do: str = "") -> None:
        remedy = what_to_do or "Check the address and the network, then try again."
        super().__init__(message, code="connection_lost", what_to_do=remedy)


class TimedOutError(ClientError):
    """The server is reachable, but nothing arrived within the client's time limit."""

    def __init__(self, message: str, *, what_to_do: str = "") -> None:
        super().__init__(message, code="timed_out", what_to_do=what_to_do)


class OutcomeUnknownError(ClientError):
    """The message was sent, but the session that knows its ids is gone.

    Sending it again could store it twice: read the history of the chat first.
    """

    def __init__(self, message: str) -> None:
        remedy = "Read the history of the chat before you send it again."
        super().__init__(message, code="outcome_unknown", what_to_do=remedy)


class NoAnswerError(ClientError):
    """The message was stored, but no agent answers it."""

    def __init__(self) -> None:
        super().__init__(
            "The message is stored; no agent of the chat answers it.",
            code="no_answer",
            what_to_do="Mention an agent of the chat, for example @echo.",
        )


class AnswerFailedError(ClientError):
    """An answer ended with an error; ``text`` is the part received."""

    def __init__(self, message: str, *, code: str, details: Mapping[str, Any], text: str) -> None:
        super().__init__(message, code=code, details=details)
        self.text = text


class AnswerCancelledError(ClientError):
    """An answer was cancelled by ``username``; ``text`` is the part received."""

    def __init__(self, *, text: str, username: str | None) -> None:
        by = f" by {username}" if username else ""
        super().__init__(f"The answer was cancelled{by}.", code="cancelled")
        self.text = text
        self.username = username


class PaymentRequiredError(ClientError):
    """The answer costs ``amount`` of ``currency``, and this client did not agree to pay."""

    def __init__(self, amount: str, currency: str) -> None:
        super().__init__(
            f"The answer costs {amount} {currency}, and this client did not agree to pay.",
            code=ErrorCode.PAYMENT_REQUIRED,
            details={"amount": amount, "currency": currency},
            what_to_do="Set `pay_up_to` or `agree` on the client, and ask again.",
        )
        self.amount = amount
        self.currency = currency


class PaymentRefusedError(ClientError):
    """The server refused the payment; nothing was charged."""


class ExportCutError(ClientError):
    """An exported file is incomplete, or was changed after it was written."""

    def __init__(self, message: str, *, code: str = "export_cut") -> None:
        super().__init__(message, code=code, what_to_do="Export the chat again.")


_KINDS: dict[type[ClientError], frozenset[str]] = {
    UnauthorizedError: frozenset({"unauthorized", "token_expired", "token_expiring"}),
    NotPermittedError: frozenset({"forbidden", "forbidden_role", "not_permitted"}),
    NotFoundError: frozenset({"not_found", "unknown_session", "unknown_call"}),
    ConflictError: frozenset({"conflict", "event_id_conflict", "session_exists"}),
    RateLimitError: frozenset(
        {"rate_limited", "rate_limit_exceeded", "queue_full", "quota_exceeded", "too_many_sessions"}
    ),
    UnavailableError: frozenset(
        {"unavailable", "busy", "internal_error", "agent_offline", "provider_error", "timeout"}
    ),
    PaymentRefusedError: frozenset({"insufficient_balance", "payment_required", "spending_limit"}),
}
_SUFFIXES: dict[str, type[ClientError]] = {"_not_found": NotFoundError, "_conflict": ConflictError}
_STATUSES: dict[int, type[ClientError]] = {
    401: UnauthorizedError,
    402: PaymentRefusedError,
    403: NotPermittedError,
    404: NotFoundError,
    409: ConflictError,
    412: ConflictError,
    429: RateLimitError,
}
_FIRST_SERVER_FAULT = 500


def error_of(detail: ErrorDetail) -> ClientError:
    """Return the exception for the ``error`` of an event."""
    kind = _kind_of(detail.code) or InvalidRequestError
    return kind(detail.message or detail.code, code=detail.code, details=detail.details)


def error_of_problem(status: int, problem: Mapping[str, Any]) -> ClientError:
    """Return the exception for an HTTP refusal; ``problem`` is its document, which may be empty."""
    code = str(problem.get("code") or f"http_{status}")
    kind = _kind_of(code) or _STATUSES.get(status)
    if kind is None:
        kind = UnavailableError if status >= _FIRST_SERVER_FAULT else InvalidRequestError
    title, detail = str(problem.get("title") or ""), str(problem.get("detail") or "")
    fields = [_field(field) for field in problem.get("errors") or () if isinstance(field, Mapping)]
    message = " ".join(dict.fromkeys(filter(None, [detail or title, *fields])))
    details = {name: value for name, value in problem.items() if name not in {"title", "type"}}
    return kind(message or f"The server answered with status {status}.", code=code, details=details)


def _field(error: Mapping[str, Any]) -> str:
    place = error.get("parameter") or error.get("pointer") or ""
    return f"{place}: {error.get('detail', '')}".removeprefix(": ")


def _kind_of(code: str) -> type[ClientError] | None:
    for kind, codes in _KINDS.items():
        if code in codes:
            return kind
    return next((kind for suffix, kind in _SUFFIXES.items() if code.endswith(suffix)), None)


def _remedy(code: str, retry_after: float | None) -> str:
    """Return the remedy for a code from the table of the protocol, as a sentence for people."""
    remedies = {str(row.code): row.what_to_do for row in ERROR_CODES.values()}
    if code == "unauthorized":
        return (
            "Create a key on the page /account; on the command line, save it with `uamp keys add`."
        )
    if retry_after is None:
        seconds = "a few seconds"
    else:
        seconds = "1 second" if retry_after == 1 else f"{retry_after:g} seconds"
    return remedies.get(code, "").replace("details.retry_after seconds", seconds)
