"""Every error code with its event, its consequence and its remedy.

Each mistake that a peer can make has one row here, and the server never sends a code without a row.
"""

from collections.abc import Iterable

import msgspec

from uamp.errors.codes import ErrorCode


class ErrorRow(msgspec.Struct, frozen=True):
    """One code: the event that carries it, when it is sent, and what its recipient should do.

    ``event`` is session.error, response.error, or both, "session.error | response.error": then the
    error of a known response is a response.error. If ``fatal``, the socket is closed with
    ``close_code`` after the event.
    """

    code: ErrorCode
    event: str
    when: str
    what_to_do: str
    fatal: bool = False
    close_code: int | None = None


_SESSION = "session.error"
_RESPONSE = "response.error"
_EITHER = "session.error | response.error"
_C = ErrorCode
_FIX = "Correct the frame and send it again; the connection stays open."
_SMALLER = "Send less, or upload the medium and send its URL."


def _table(rows: Iterable[ErrorRow]) -> dict[ErrorCode, ErrorRow]:
    return {row.code: row for row in rows}


ERROR_CODES: dict[ErrorCode, ErrorRow] = _table(
    (
        ErrorRow(
            _C.FRAME_TOO_LARGE,
            _SESSION,
            "The frame exceeds the limit of the socket, which is lower before authentication.",
            _SMALLER,
            fatal=True,
            close_code=1009,
        ),
        ErrorRow(
            _C.BINARY_FRAME,
            _SESSION,
            "A binary WebSocket frame.",
            "Send each event as one text frame.",
        ),
        ErrorRow(
            _C.INVALID_JSON,
            _SESSION,
            "Not JSON, not UTF-8, truncated, a byte order mark, or data after the value.",
            _FIX,
        ),
        ErrorRow(_C.DUPLICATE_KEY, _SESSION, "An object has a duplicate member.", _FIX),
        ErrorRow(
            _C.INVALID_NUMBER,
            _SESSION,
            "NaN, Infinity, or a number too large for a double.",
            "Send larger numbers as strings.",
        ),
        ErrorRow(
            _C.INVALID_TEXT,
            _SESSION,
            "A string holds NUL or half of a surrogate pair.",
            _FIX,
        ),
        ErrorRow(_C.TOO_DEEP, _SESSION, "Objects and arrays are nested too deeply.", _FIX),
        ErrorRow(_C.TOO_MANY_VALUES, _SESSION, "The frame holds too many JSON values.", _FIX),
        ErrorRow(_C.TOO_MANY_MEMBERS, _SESSION, "One object has too many members.", _FIX),
        ErrorRow(_C.KEY_TOO_LONG, _SESSION, "A member's name is too long.", _FIX),
        ErrorRow(_C.STRING_TOO_LONG, _SESSION, "A string or a medium is too long.", _SMALLER),
        ErrorRow(
            _C.EVENT_TOO_LARGE,
            _SESSION,
            "The event without its media, a tool result, a schema or a turn's text is too large.",
            _SMALLER,
        ),
        ErrorRow(
            _C.INVALID_EVENT,
            _SESSION,
            "Not an object, no type, a missing field, or a field of the wrong type.",
            "Compare the event with its schema; the message names the field.",
        ),
        ErrorRow(
            _C.TOO_MANY_ITEMS,
            _SESSION,
            "One event has too many messages or tools.",
            "Send fewer.",
        ),
        ErrorRow(
            _C.TOO_MANY_BAD_FRAMES,
            _SESSION,
            "Too many bad frames within a minute.",
            "Correct the client before it connects again.",
            fatal=True,
            close_code=1008,
        ),
        ErrorRow(
            _C.EVENT_ID_CONFLICT,
            _SESSION,
            "An event_id was used before with a different body.",
            "Give every new event a new id; repeat an event unchanged.",
        ),
        ErrorRow(
            _C.VERSION_MISMATCH,
            _RESPONSE,
            "The major version in uamp_version is not 1.",
            "Speak UAMP 1.x.",
            fatal=True,
            close_code=4426,
        ),
        ErrorRow(
            _C.SESSION_REQUIRED,
            _SESSION,
            "An event before session.create, or without session_id while several are open.",
            "Create a session, or name it in session_id.",
        ),
        ErrorRow(
            _C.UNKNOWN_SESSION,
            _SESSION,
            "The connection has no such session: it has ended, is unknown or is someone else's.",
            "Create or resume the session on this connection.",
        ),
        ErrorRow(
            _C.SESSION_EXISTS,
            _SESSION,
            "session.create suggests or resumes an id that is open on this connection.",
            "Use the open session, or end it first.",
        ),
        ErrorRow(
            _C.STATE_CONFLICT,
            _SESSION,
            "state.update names a version of the chat's state other than the current one.",
            "Apply the changes in between, and send the change again for the current version.",
        ),
        ErrorRow(
            _C.TOO_MANY_SESSIONS,
            _SESSION,
            "The connection or the user has reached the limit of sessions.",
            "End a session first.",
        ),
        ErrorRow(
            _C.TOO_MANY_INPUTS,
            _SESSION,
            "Too many inputs, or too many bytes of input, are waiting for response.create.",
            "Send response.create.",
        ),
        ErrorRow(
            _C.QUOTA_EXCEEDED,
            _SESSION,
            "The storage limit of the person, or of the visitors, is reached.",
            "Delete contents, or ask the operator for more.",
        ),
        ErrorRow(
            _C.UNAUTHORIZED,
            _EITHER,
            "The credential is missing or refused. For a response: the asker may no longer ask.",
            "Send a valid token in session.create or session.update.",
        ),
        ErrorRow(
            _C.TOKEN_EXPIRED,
            _SESSION,
            "The session's token has expired.",
            "Send session.update with a new token.",
        ),
        ErrorRow(
            _C.TOKEN_EXPIRING,
            _SESSION,
            "The session's token expires within a minute.",
            "Send session.update with a new token.",
        ),
        ErrorRow(
            _C.FORBIDDEN,
            _SESSION,
            "The credential does not allow this.",
            "Ask the owner of the chat or agent for access.",
        ),
        ErrorRow(
            _C.FORBIDDEN_ROLE,
            _SESSION,
            "The credential does not allow input in the role system or assistant.",
            "Send role user, or use a key with the scope for histories.",
        ),
        ErrorRow(
            _C.AGENT_NOT_FOUND,
            _SESSION,
            "No agent has that name, or the caller may not see it.",
            "Check the agent's name.",
        ),
        ErrorRow(
            _C.CHAT_NOT_FOUND,
            _SESSION,
            "No chat has that id, or the caller may not see it.",
            "Check the chat's id.",
        ),
        ErrorRow(
            _C.MESSAGE_NOT_FOUND,
            _SESSION,
            "No message in the session's chat has that id, or it was deleted.",
            "Check the message's id; read the chat's history.",
        ),
        ErrorRow(
            _C.MESSAGE_CONFLICT,
            _SESSION,
            "message.edit names a revision of the message other than the current one.",
            "Apply the changes in between, and send the edit again for the current revision.",
        ),
        ErrorRow(
            _C.THREAD_NESTED,
            _SESSION,
            "The message named by an input's `thread` is itself in a thread.",
            "Use that message's own `thread`.",
        ),
        ErrorRow(
            _C.CALL_NOT_FOUND,
            _SESSION,
            "The chat has no call in progress, or a different one from the one the event names.",
            "Start one with voice.invite, under a new call_id.",
        ),
        ErrorRow(
            _C.CALL_RUNNING, _SESSION, "A call is already in progress.", "Join details.call_id."
        ),
        ErrorRow(_C.CALL_FULL, _SESSION, "The call is full.", "Try again later."),
        ErrorRow(
            _C.NOT_IN_CALL, _SESSION, "The sender or receiver is not in the call.", "Join it first."
        ),
        ErrorRow(
            _C.AGENT_OFFLINE,
            _EITHER,
            "The agent is not connected.",
            "Try again after details.retry_after seconds.",
        ),
        ErrorRow(
            _C.AGENT_DISABLED,
            _EITHER,
            "The agent is off, or was switched off while answering; the output so far is kept.",
            "Ask another agent, or have the owner of this one switch it on.",
        ),
        ErrorRow(
            _C.RATE_LIMITED,
            _SESSION,
            "Too many events; this one was not processed.",
            "Send it again after details.retry_after seconds.",
        ),
        ErrorRow(
            _C.TIMEOUT,
            _EITHER,
            "The session, the tool result, the agent or the provider took too long.",
            "Try again.",
        ),
        ErrorRow(
            _C.BUSY,
            _SESSION,
            "The server is at capacity.",
            "Send it again after details.retry_after seconds.",
        ),
        ErrorRow(
            _C.UNAVAILABLE,
            _SESSION,
            "The server cannot reach its storage, or is stopping; nothing was stored.",
            "Send it again after details.retry_after seconds.",
        ),
        ErrorRow(
            _C.RESYNC,
            _SESSION,
            "Events or pieces of text were lost and cannot be sent again.",
            "Load the chat's history and resume from its last seq.",
        ),
        ErrorRow(
            _C.INVALID_MEDIA,
            _SESSION,
            "A medium is not valid base64, does not match its type, or is of an unsupported kind.",
            "Correct the medium, or declare its actual format.",
        ),
        ErrorRow(
            _C.CONTENT_NOT_FOUND,
            _SESSION,
            "No content has that id, or the caller may not see it.",
            "Upload the content first.",
        ),
        ErrorRow(
            _C.QUEUE_FULL,
            _SESSION,
            "The limit of waiting responses is reached.",
            "Wait for response.done.",
        ),
        ErrorRow(
            _C.NOTHING_TO_CANCEL,
            _SESSION,
            "response.cancel names no running response of this session.",
            "Nothing: the response has ended.",
        ),
        ErrorRow(
            _C.UNKNOWN_CALL,
            _SESSION,
            "tool.result names no waiting call of this session.",
            "Answer each tool.call once.",
        ),
        ErrorRow(
            _C.UNSUPPORTED_MODALITY,
            _SESSION,
            "The agent's model does not accept this kind of medium, or not in this format.",
            "Send a kind listed in the agent's capabilities.",
        ),
        ErrorRow(
            _C.UNSUPPORTED_PARAMETER,
            _SESSION,
            "The answering model has no such option, or no tool has the name in tool_choice.",
            "Leave out the options listed in `details.parameters`.",
        ),
        ErrorRow(
            _C.PAYMENT_NOT_DUE,
            _SESSION,
            "payment.submit, but no payment was required; nothing was charged.",
            "Wait for payment.required.",
        ),
        ErrorRow(
            _C.PAYMENT_REQUIRED,
            _RESPONSE,
            "The response was not paid.",
            "Top up, then ask again.",
        ),
        ErrorRow(
            _C.PAYMENT_TIMEOUT,
            _RESPONSE,
            "The required payment was not submitted in time.",
            "Ask again and answer payment.required.",
        ),
        ErrorRow(_C.PROVIDER_ERROR, _RESPONSE, "The model provider failed.", "Try again."),
        ErrorRow(
            _C.RATE_LIMIT_EXCEEDED,
            _RESPONSE,
            "The model provider is limiting requests.",
            "Try again after details.retry_after seconds.",
        ),
        ErrorRow(
            _C.CONTEXT_LENGTH_EXCEEDED,
            _RESPONSE,
            "The conversation is too long for the model.",
            "Start a new chat or choose a model with a larger window.",
        ),
        ErrorRow(
            _C.CONTENT_FILTERED,
            _RESPONSE,
            "The provider's filter stopped the answer.",
            "Ask differently.",
        ),
        ErrorRow(
            _C.INVALID_OUTPUT,
            _RESPONSE,
            "The answer violates response_format, or its schema is invalid; the text is kept.",
            "Ask for something simpler, or correct the schema.",
        ),
        ErrorRow(
            _C.TOO_MANY_STEPS,
            _RESPONSE,
            "The agent reached the limit of steps for one response.",
            "Ask for less at once.",
        ),
        ErrorRow(
            _C.TOO_MANY_HOPS,
            _RESPONSE,
            "Too many servers have forwarded the request; agents may call each other in a loop.",
            "Do not repeat the request; the agents' owners have to break the loop.",
        ),
        ErrorRow(
            _C.ANSWER_TOO_LONG,
            _RESPONSE,
            "The answer has more characters than one response keeps; the text so far is kept.",
            "Ask for less at once, or set max_tokens.",
        ),
        ErrorRow(
            _C.INVALID_TOOL_RESULT,
            _RESPONSE,
            "The model refused the request that carried the client's tool.result.",
            "Send a result that the model accepts: text, or media of the agent's capabilities.",
        ),
        ErrorRow(
            _C.REQUEST_REFUSED,
            _RESPONSE,
            "The model refused the client's tools or response_format after it had begun to work.",
            "Send tools and a schema that the model accepts; the message says what it refused.",
        ),
        ErrorRow(
            _C.STEP_REFUSED,
            _RESPONSE,
            "A step of the plan failed: its call was not allowed, or the client's tool failed.",
            "Allow the call, or answer it without is_error.",
        ),
        ErrorRow(
            _C.INTERRUPTED,
            _RESPONSE,
            "The server stopped during the answer; the text so far is kept.",
            "Ask again.",
        ),
        ErrorRow(
            _C.INTERNAL_ERROR,
            _EITHER,
            "Internal server error; the log of the server has the details.",
            "Try again; if it persists, tell the operator.",
        ),
    )
)
