"""Errors that end an answer."""

from uamp.errors.codes import ErrorCode
from uamp.errors.rows import EITHER, RESPONSE, ErrorRow

ANSWER_ERRORS: tuple[ErrorRow, ...] = (
    ErrorRow(
        ErrorCode.PAYMENT_REQUIRED,
        RESPONSE,
        "The response was not paid for.",
        "Top up, then ask again.",
    ),
    ErrorRow(
        ErrorCode.PAYMENT_TIMEOUT,
        RESPONSE,
        "The required payment was not submitted in time.",
        "Ask again and answer payment.required.",
    ),
    ErrorRow(ErrorCode.PROVIDER_ERROR, RESPONSE, "The model provider failed.", "Try again."),
    ErrorRow(
        ErrorCode.RATE_LIMIT_EXCEEDED,
        RESPONSE,
        "The model provider is limiting requests.",
        "Try again after details.retry_after seconds.",
    ),
    ErrorRow(
        ErrorCode.CONTEXT_LENGTH_EXCEEDED,
        RESPONSE,
        "The conversation is too long for the model.",
        "Start a new chat or choose a model with a larger window.",
    ),
    ErrorRow(
        ErrorCode.CONTENT_FILTERED,
        RESPONSE,
        "The provider's filter stopped the answer.",
        "Ask differently.",
    ),
    ErrorRow(
        ErrorCode.INVALID_OUTPUT,
        RESPONSE,
        "The answer violates response_format, or its schema is invalid; the text is kept.",
        "Ask for something simpler, or correct the schema.",
    ),
    ErrorRow(
        ErrorCode.TOO_MANY_STEPS,
        RESPONSE,
        "The agent reached the limit of steps for one response.",
        "Ask for less at once.",
    ),
    ErrorRow(
        ErrorCode.TOO_MANY_HOPS,
        RESPONSE,
        "Too many servers have forwarded the request; agents may call each other in a loop.",
        "Do not repeat the request; the agents' owners have to break the loop.",
    ),
    ErrorRow(
        ErrorCode.ANSWER_TOO_LONG,
        RESPONSE,
        "The answer has more characters than one response keeps; the text so far is kept.",
        "Ask for less at once, or set max_tokens.",
    ),
    ErrorRow(
        ErrorCode.INVALID_TOOL_RESULT,
        RESPONSE,
        "The model refused the request that carried the client's tool.result.",
        "Send a result that the model accepts: text, or media of the agent's capabilities.",
    ),
    ErrorRow(
        ErrorCode.REQUEST_REFUSED,
        RESPONSE,
        "The model refused the client's tools or response_format after it had begun to work.",
        "Send tools and a schema that the model accepts; the message names the rejected part.",
    ),
    ErrorRow(
        ErrorCode.STEP_REFUSED,
        RESPONSE,
        "A step of the plan failed: its call was not allowed, or the client's tool failed.",
        "Allow the call, or send a tool result without is_error.",
    ),
    ErrorRow(
        ErrorCode.INTERRUPTED,
        RESPONSE,
        "The server stopped during the answer; the text so far is kept.",
        "Ask again.",
    ),
    ErrorRow(
        ErrorCode.INTERNAL_ERROR,
        EITHER,
        "Internal server error; the log of the server has the details.",
        "Try again; if it persists, tell the operator.",
    ),
)
