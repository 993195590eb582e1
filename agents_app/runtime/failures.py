"""The errors that users read when a run fails.

A provider's own texts may hold keys, prompts and addresses. They go to the log; users get
the words that are written here.
"""

import logging
from collections.abc import Collection
from typing import NoReturn

from agents_app.selectors import AgentSpec
from uamp.errors import ErrorCode
from uap import PlanStepError
from upp import ErrorCode as ProviderErrorCode
from upp import TooManyRoundsError, UPPError

logger = logging.getLogger(__name__)

TOOL_RESULT = "tool.result"


class AgentError(Exception):
    """A run failed; `message` is for users, `retry_after` in seconds."""

    def __init__(self, message: str, *, code: ErrorCode, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.retry_after = retry_after


_FAILURES = {
    ProviderErrorCode.AUTHENTICATION_FAILED: (
        ErrorCode.PROVIDER_ERROR,
        "The model does not accept this server's key. Its operator has to check it.",
    ),
    ProviderErrorCode.RATE_LIMITED: (
        ErrorCode.RATE_LIMIT_EXCEEDED,
        "The model gets too many requests. Try again later.",
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
        "The model's provider filtered the answer out.",
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


def fail(
    spec: AgentSpec,
    error: UPPError,
    *,
    parts: Collection[str] = (),
    declined: Collection[str] = (),
) -> NoReturn:
    """Raise the AgentError that users may read for what a provider or a broker raised.

    `parts` names what the request was the first to carry of what the client sent. The provider took
    what the agent and the server send, so a refusal is that of the parts. `declined` are the ids
    of calls that the client or a person made fail.
    """
    if isinstance(error.__cause__, AgentError):
        raise error.__cause__
    logger.warning("Agent %s: %s %s: %s", spec.name, error.provider, error.code, error.message)
    if isinstance(error, TooManyRoundsError):
        raise AgentError(
            f"{spec.name} used its {spec.max_steps} tool rounds without coming to an answer.",
            code=ErrorCode.TOO_MANY_STEPS,
        ) from error
    if isinstance(error.__cause__, PlanStepError):
        raise _step_error(error.__cause__, declined) from error
    if parts and error.code == ProviderErrorCode.INVALID_REQUEST:
        only_result = set(parts) == {TOOL_RESULT}
        raise AgentError(
            f"The model refused the request with the client's {' and '.join(sorted(parts))}.",
            code=ErrorCode.INVALID_TOOL_RESULT if only_result else ErrorCode.REQUEST_REFUSED,
        ) from error
    code, message = _FAILURES.get(error.code, _FAILURE)
    raise AgentError(message, code=code, retry_after=error.retry_after) from error


def _step_error(error: PlanStepError, declined: Collection[str]) -> AgentError:
    if error.calls.isdisjoint(declined):
        text = "A step of the agent's plan failed, because its tool did."
        return AgentError(text, code=ErrorCode.PROVIDER_ERROR)
    return AgentError(
        "A step of the agent's plan failed: its call was not allowed, or the client's tool failed.",
        code=ErrorCode.STEP_REFUSED,
    )
