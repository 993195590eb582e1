"""The errors shown to users when a run fails.

A provider's own message may contain keys, prompts and addresses. It goes to the log and, without
credentials, to the response's row for operators (`AgentError.cause`); users see the messages
defined here.
"""

import logging
from collections.abc import Callable, Collection
from typing import NoReturn

from django.conf import settings

from agents_app.models.agents import ENVELOPES
from agents_app.remote import health
from agents_app.selectors import AgentSpec
from telemetry import metrics
from uamp.errors import ErrorCode
from uap import PlanStepError
from upp import ErrorCode as ProviderErrorCode
from upp import TooManyRoundsError, UPPError

logger = logging.getLogger(__name__)

TOOL_RESULT = "tool.result"
CAUSE_CHARS = 2_000
"""The most characters of a provider's message that are stored for operators."""

_redact: Callable[[str], str] | None = None


def redact_with(redact: Callable[[str], str]) -> None:
    """Set the function that removes credentials from causes; without it, no cause is stored."""
    global _redact  # noqa: PLW0603 one for the process
    _redact = redact


def cause_of(error: Exception) -> str:
    """Describe an error for operators; return "" if that is not possible.

    For a provider's error: its name, the code, the HTTP status, the provider's id of the request
    and its own message, and the same of each attempt before the last one. Without credentials, and
    cut to CAUSE_CHARS.
    """
    if isinstance(error, AgentError):
        return without_secrets(error.cause)
    if _redact is None:
        return ""
    if isinstance(error, UPPError):
        attempts = [
            f"Attempt {number} failed: {_words_of(earlier)}"
            for number, earlier in enumerate(error.earlier, 1)
        ]
        text = "\n".join([_words_of(error), *attempts])
    else:
        text = f"{type(error).__name__}: {error}"
    return without_secrets(text)


def without_secrets(text: str) -> str:
    """Return a text for operators without credentials, cut to CAUSE_CHARS; "" if not possible."""
    return "" if _redact is None else _redact(text)[:CAUSE_CHARS].replace("\0", "")


def _words_of(error: UPPError) -> str:
    facts = [] if error.status_code is None else [f"HTTP {error.status_code}"]
    if error.request_id:
        facts.append(f"request {error.request_id}")
    where = f" ({', '.join(facts)})" if facts else ""
    return f"{error.provider or 'model'} {error.code}{where}: {error.message}"


class AgentError(Exception):
    """A failed run: `message` is for users, `cause` for operators, `retry_after` in seconds.

    `is_elsewhere`: another server refused, so the asker is not at fault whatever the code says.
    """

    def __init__(
        self,
        message: str,
        *,
        code: ErrorCode,
        retry_after: float | None = None,
        cause: str = "",
        is_elsewhere: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.retry_after = retry_after
        self.cause = cause
        self.is_elsewhere = is_elsewhere


_FAILURES = {
    ProviderErrorCode.AUTHENTICATION_FAILED: (
        ErrorCode.PROVIDER_ERROR,
        "The model does not accept this server's key. Its operator has to check it.",
    ),
    ProviderErrorCode.RATE_LIMITED: (
        ErrorCode.RATE_LIMIT_EXCEEDED,
        "The model is receiving too many requests. Try again later.",
    ),
    ProviderErrorCode.CONTEXT_LENGTH_EXCEEDED: (
        ErrorCode.CONTEXT_LENGTH_EXCEEDED,
        "The conversation is too long for the model. Start a new one or send less.",
    ),
    ProviderErrorCode.MODEL_NOT_FOUND: (
        ErrorCode.PROVIDER_ERROR,
        "The agent's model does not exist. The server's operator has to choose another one.",
    ),
    ProviderErrorCode.INVALID_REQUEST: (
        ErrorCode.PROVIDER_ERROR,
        "The model refused the request.",
    ),
    ProviderErrorCode.CONTENT_FILTERED: (
        ErrorCode.CONTENT_FILTERED,
        "The model's provider filtered the answer.",
    ),
    ProviderErrorCode.QUOTA_EXCEEDED: (
        ErrorCode.PROVIDER_ERROR,
        "The server's quota at the model's provider is used up.",
    ),
    ProviderErrorCode.NETWORK_ERROR: (
        ErrorCode.PROVIDER_ERROR,
        "The connection to the model was lost. Try again.",
    ),
    ProviderErrorCode.TIMEOUT: (ErrorCode.TIMEOUT, "The model did not answer in time. Try again."),
    ProviderErrorCode.CANCELLED: (ErrorCode.INTERRUPTED, "The answer was interrupted."),
}
_FAILURE = (ErrorCode.PROVIDER_ERROR, "The model failed. Try again.")
_REMOTE_FAILURES = {
    ProviderErrorCode.AUTHENTICATION_FAILED: (
        ErrorCode.PROVIDER_ERROR,
        "{name} is a remote agent and does not accept its key. Its owner has to check it.",
    ),
    ProviderErrorCode.RATE_LIMITED: (
        ErrorCode.RATE_LIMIT_EXCEEDED,
        "{name} is a remote agent and is receiving too many requests. Try again later.",
    ),
    ProviderErrorCode.CONTEXT_LENGTH_EXCEEDED: (
        ErrorCode.CONTEXT_LENGTH_EXCEEDED,
        "The conversation is too long for {name}. Start a new one or send less.",
    ),
    ProviderErrorCode.MODEL_NOT_FOUND: (
        ErrorCode.AGENT_OFFLINE,
        "{name} is no longer at its address. Its owner has to correct it.",
    ),
    ProviderErrorCode.INVALID_REQUEST: (
        ErrorCode.PROVIDER_ERROR,
        "{name} is a remote agent and refused the request.",
    ),
    ProviderErrorCode.INVALID_RESPONSE: (
        ErrorCode.PROVIDER_ERROR,
        "{name} is a remote agent and sent an invalid answer.",
    ),
    ProviderErrorCode.CONTENT_FILTERED: (
        ErrorCode.CONTENT_FILTERED,
        "The answer of {name} was filtered out.",
    ),
    ProviderErrorCode.QUOTA_EXCEEDED: (
        ErrorCode.QUOTA_EXCEEDED,
        "{name} has to be paid on another server, and its owner's budget does not allow that.",
    ),
    ProviderErrorCode.NETWORK_ERROR: (
        ErrorCode.AGENT_OFFLINE,
        "The connection to the remote agent {name} failed. Try again.",
    ),
    ProviderErrorCode.TIMEOUT: (
        ErrorCode.TIMEOUT,
        "The remote agent {name} did not answer in time. Try again.",
    ),
    ProviderErrorCode.CANCELLED: (ErrorCode.INTERRUPTED, "The answer was interrupted."),
}
_UNPAID_PEER = "{name} has to be paid on its own server. Ask it there, with a payment token."
_REMOTE_FAILURE = (ErrorCode.PROVIDER_ERROR, "The remote agent {name} failed. Try again.")


def unpaid(message: str) -> AgentError:
    """Return the error of an answer that could not continue without a payment."""
    return AgentError(message, code=ErrorCode.PAYMENT_REQUIRED)


def payment_is_late() -> AgentError:
    """Return the error of an answer whose payment did not arrive in time."""
    return AgentError(
        "The payment did not arrive in time. Ask again to pay for it.",
        code=ErrorCode.PAYMENT_TIMEOUT,
    )


def check_remote(spec: AgentSpec, *, servers: int) -> None:
    """Raise AgentError if a remote agent must not be called now.

    That is the case while an agent pauses after repeated failures, and for every agent once
    `servers` servers have passed the request on.
    """
    if servers >= settings.UAMP_REMOTE_HOPS:
        raise AgentError(
            f"{spec.name} is a remote agent, and {servers} servers have already forwarded this"
            " request, which is the limit.",
            code=ErrorCode.TOO_MANY_HOPS,
        )
    if pause := health.pause_of(spec):
        raise AgentError(
            f"{spec.name} is a remote agent and cannot be reached at the moment. Try again later.",
            code=ErrorCode.AGENT_OFFLINE,
            retry_after=pause,
        )


def fail(
    spec: AgentSpec,
    error: UPPError,
    *,
    response_id: str,
    parts: Collection[str] = (),
    declined: Collection[str] = (),
) -> NoReturn:
    """Raise the AgentError that users see for an error of a provider or a broker.

    `parts` are the client's parts that this request was the first to carry. The provider has
    accepted what the agent and the server send, so a refusal must be due to them. `declined` are
    the ids of calls that the client or a person made fail. The log line names the response.
    """
    if isinstance(error.__cause__, AgentError):
        raise error.__cause__
    logger.warning(
        "response %s, agent %s: %s %s: %s",
        response_id,
        spec.name,
        error.provider,
        error.code,
        error.message,
    )
    metrics.PROVIDER_ERRORS.labels(spec.provider, error.code.value).inc()
    cause = cause_of(error)
    if isinstance(error, TooManyRoundsError):
        raise AgentError(
            f"{spec.name} used its {spec.max_steps} tool rounds without coming to an answer.",
            code=ErrorCode.TOO_MANY_STEPS,
            cause=cause,
        ) from error
    if isinstance(error.__cause__, PlanStepError):
        raise _step_error(error.__cause__, declined, cause) from error
    if spec.kind == "remote":
        code, message = _REMOTE_FAILURES.get(error.code, _REMOTE_FAILURE)
        if spec.protocol in ENVELOPES and error.code == ProviderErrorCode.QUOTA_EXCEEDED:
            # A peer's 4.02: this server pays no peers.
            raise AgentError(
                _UNPAID_PEER.format(name=spec.name),
                code=ErrorCode.PAYMENT_REQUIRED,
                cause=cause,
                is_elsewhere=True,
            ) from error
        message = message.format(name=spec.name)
        raise AgentError(message, code=code, retry_after=error.retry_after, cause=cause) from error
    if parts and error.code == ProviderErrorCode.INVALID_REQUEST:
        only_result = set(parts) == {TOOL_RESULT}
        raise AgentError(
            f"The model refused the request with the client's {' and '.join(sorted(parts))}.",
            code=ErrorCode.INVALID_TOOL_RESULT if only_result else ErrorCode.REQUEST_REFUSED,
            cause=cause,
        ) from error
    code, message = _FAILURES.get(error.code, _FAILURE)
    raise AgentError(message, code=code, retry_after=error.retry_after, cause=cause) from error


def _step_error(error: PlanStepError, declined: Collection[str], cause: str) -> AgentError:
    if error.calls.isdisjoint(declined):
        text = "A step of the agent's plan failed because its tool failed."
        return AgentError(text, code=ErrorCode.PROVIDER_ERROR, cause=cause)
    return AgentError(
        "A step of the agent's plan failed: its call was not allowed, or the client's tool failed.",
        code=ErrorCode.STEP_REFUSED,
        cause=cause,
    )
