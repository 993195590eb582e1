"""The problems of the JSON routes, by code: status, title and remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class ProblemKind(NamedTuple):
    """One kind of problem: its HTTP status, title and remedy."""

    status: int
    title: str
    remedy: str


PROBLEMS: Final[Mapping[str, ProblemKind]] = {
    "invalid": ProblemKind(400, "The request is not valid.", "See `errors` for each field."),
    "malformed_body": ProblemKind(
        400,
        "The body cannot be read.",
        "Send a complete body of the declared Content-Type, in UTF-8.",
    ),
    "malformed_request": ProblemKind(
        400,
        "The request is not HTTP/1.1.",
        "Percent-encode spaces and letters beyond ASCII in the URL. Check the headers.",
    ),
    "headers_too_large": ProblemKind(
        431, "The headers are too large.", "Send less in the URL, the cookies and the headers."
    ),
    "unknown_parameter": ProblemKind(
        400, "A query parameter is not known.", "Leave out the parameters in `errors`."
    ),
    "invalid_cursor": ProblemKind(
        400,
        "The cursor is not valid here.",
        "Send `next_cursor` unchanged, with the same path and filters.",
    ),
    "unauthorized": ProblemKind(
        401, "Sign in first.", "Send `Authorization: Bearer <API key>` or sign in."
    ),
    "token_expired": ProblemKind(401, "The API key or token has expired.", "Use a new one."),
    "insufficient_balance": ProblemKind(
        402, "The balance is too low.", "Top up, then ask again with the same Idempotency-Key."
    ),
    "payment_token_invalid": ProblemKind(
        402, "The payment token is not valid here.", "Pay with another one."
    ),
    "payment_token_expired": ProblemKind(
        402, "The payment token has expired.", "Pay with a new one."
    ),
    "spending_limit": ProblemKind(
        402, "A spending limit is reached.", "`payment` says which, and when it resets."
    ),
    "payment_failed": ProblemKind(402, "The payment failed.", "See `detail`."),
    "forbidden": ProblemKind(
        403, "This is not allowed.", "With a session cookie, writes need the X-CSRFToken header."
    ),
    "not_found": ProblemKind(404, "Not found.", "It does not exist, or you may not see it."),
    "method_not_allowed": ProblemKind(
        405, "The method is not allowed here.", "The Allow header lists the methods."
    ),
    "idempotency_conflict": ProblemKind(
        409, "The Idempotency-Key was used for another request.", "Use a new Idempotency-Key."
    ),
    "idempotency_key_in_use": ProblemKind(
        409,
        "The same request is still being processed.",
        "Send it again after `retry_after`: it takes effect only once.",
    ),
    "secret_shown_once": ProblemKind(
        409,
        "The first request with this Idempotency-Key succeeded.",
        "The response contained a secret, which is not stored. `location` is the address of what"
        " was created.",
    ),
    "message_conflict": ProblemKind(
        409,
        "The message was changed in the meantime.",
        "Read its current revision, then edit that one.",
    ),
    "response_running": ProblemKind(
        409, "The answer has not ended.", "Wait for its end, or cancel it."
    ),
    "wrong_offset": ProblemKind(
        409,
        "The offset does not match the upload.",
        "Continue from `offset`, which HEAD returns too.",
    ),
    "too_many_links": ProblemKind(
        409, "The chat has the maximum number of links.", "Revoke one, then create another."
    ),
    "too_many_keys": ProblemKind(
        409, "You have the maximum number of keys.", "Revoke one, then create another."
    ),
    "too_many_agents": ProblemKind(
        409, "You have the maximum number of agents.", "Connect one of your existing agents."
    ),
    "too_many_webhooks": ProblemKind(
        409, "You have the maximum number of webhooks.", "Delete one, then create another."
    ),
    "webhook_stopped": ProblemKind(409, "The webhook is disabled.", "Enable it, then try again."),
    "too_many_unsent": ProblemKind(
        409, "The webhook has too many pending deliveries.", "Wait until some have been sent."
    ),
    "hold_ended": ProblemKind(409, "The lock has ended.", "Create a new lock."),
    "range_not_satisfiable": ProblemKind(
        416, "The file has no such bytes.", "Content-Range has its size."
    ),
    "precondition_failed": ProblemKind(
        412,
        "The resource was changed in the meantime.",
        "Read it again, then send If-Match with its new ETag.",
    ),
    "content_too_large": ProblemKind(413, "The body is too large.", "Send less at once."),
    "log_changed": ProblemKind(
        409,
        "The log of the chat was changed.",
        "The server no longer signs this log. Ask its operator.",
    ),
    "quota_exceeded": ProblemKind(
        413, "Your storage limit is reached.", "Delete files, or ask the operator for more."
    ),
    "unsupported_media_type": ProblemKind(
        415, "The body's type is not supported.", "Send JSON, or multipart for an upload."
    ),
    "invalid_media": ProblemKind(
        422, "The file cannot be stored.", "Send the complete file, with its actual type."
    ),
    "rate_limit_exceeded": ProblemKind(
        429, "Too many requests.", "Wait for `retry_after` seconds."
    ),
    "unavailable": ProblemKind(
        503, "The server cannot do this now.", "Send it again after `retry_after` seconds."
    ),
    "internal_error": ProblemKind(
        500, "Internal server error.", "Try again; tell the operator the `request_id`."
    ),
}
