"""Errors of sessions, chats, calls and requests."""

from uamp.errors.codes import ErrorCode
from uamp.errors.rows import EITHER, RESPONSE, SESSION, ErrorRow

SESSION_ERRORS: tuple[ErrorRow, ...] = (
    ErrorRow(
        ErrorCode.VERSION_MISMATCH,
        RESPONSE,
        "The major version in uamp_version is not 1.",
        "Use UAMP 1.x.",
        fatal=True,
        close_code=4426,
    ),
    ErrorRow(
        ErrorCode.SESSION_REQUIRED,
        SESSION,
        "An event before session.create, or without session_id while several are open.",
        "Create a session, or name it in session_id.",
    ),
    ErrorRow(
        ErrorCode.UNKNOWN_SESSION,
        SESSION,
        "The connection has no such session: it has ended, is unknown or is someone else's.",
        "Create or resume the session on this connection.",
    ),
    ErrorRow(
        ErrorCode.SESSION_EXISTS,
        SESSION,
        "session.create suggests or resumes an id that is open on this connection.",
        "Use the open session, or end it first.",
    ),
    ErrorRow(
        ErrorCode.STATE_CONFLICT,
        SESSION,
        "state.update is not based on the current version of the chat's state.",
        "Apply the changes in between, and send the change again for the current version.",
    ),
    ErrorRow(
        ErrorCode.TOO_MANY_SESSIONS,
        SESSION,
        "The connection or the user has reached the limit of sessions.",
        "End a session first.",
    ),
    ErrorRow(
        ErrorCode.TOO_MANY_INPUTS,
        SESSION,
        "Too many inputs, or too many bytes of input, are waiting for response.create.",
        "Send response.create.",
    ),
    ErrorRow(
        ErrorCode.QUOTA_EXCEEDED,
        SESSION,
        "The storage limit of the person, or of the visitors, is reached.",
        "Delete contents, or ask the operator for more.",
    ),
    ErrorRow(
        ErrorCode.UNAUTHORIZED,
        EITHER,
        "The credential is missing or refused. For a response: the asker may no longer ask.",
        "Send a valid token in session.create or session.update.",
    ),
    ErrorRow(
        ErrorCode.TOKEN_EXPIRED,
        SESSION,
        "The session's token has expired.",
        "Send session.update with a new token.",
    ),
    ErrorRow(
        ErrorCode.TOKEN_EXPIRING,
        SESSION,
        "The session's token expires within a minute.",
        "Send session.update with a new token.",
    ),
    ErrorRow(
        ErrorCode.FORBIDDEN,
        SESSION,
        "The credential does not allow this.",
        "Ask the owner of the chat or agent for access.",
    ),
    ErrorRow(
        ErrorCode.FORBIDDEN_ROLE,
        SESSION,
        "The credential does not allow input in the role system or assistant.",
        "Send role user, or use a key with the scope for histories.",
    ),
    ErrorRow(
        ErrorCode.AGENT_NOT_FOUND,
        SESSION,
        "No agent has that name, or the caller may not see it.",
        "Check the agent's name.",
    ),
    ErrorRow(
        ErrorCode.CHAT_NOT_FOUND,
        SESSION,
        "No chat has that id, or the caller may not see it.",
        "Check the chat's id.",
    ),
    ErrorRow(
        ErrorCode.MESSAGE_NOT_FOUND,
        SESSION,
        "No message in the session's chat has that id, or it was deleted.",
        "Check the message's id; read the chat's history.",
    ),
    ErrorRow(
        ErrorCode.MESSAGE_CONFLICT,
        SESSION,
        "message.edit is not based on the current revision of the message.",
        "Apply the changes in between, and send the edit again for the current revision.",
    ),
    ErrorRow(
        ErrorCode.THREAD_NESTED,
        SESSION,
        "The message named by an input's `thread` is itself in a thread.",
        "Use that message's own `thread`.",
    ),
    ErrorRow(
        ErrorCode.CALL_NOT_FOUND,
        SESSION,
        "The chat has no call in progress, or a different one from the one the event names.",
        "Start one with voice.invite, under a new call_id.",
    ),
    ErrorRow(
        ErrorCode.CALL_RUNNING, SESSION, "A call is already in progress.", "Join details.call_id."
    ),
    ErrorRow(ErrorCode.CALL_FULL, SESSION, "The call is full.", "Try again later."),
    ErrorRow(
        ErrorCode.NOT_IN_CALL,
        SESSION,
        "The sender or receiver is not in the call.",
        "Join it first.",
    ),
    ErrorRow(
        ErrorCode.AGENT_OFFLINE,
        EITHER,
        "The agent is not connected.",
        "Try again after details.retry_after seconds.",
    ),
    ErrorRow(
        ErrorCode.AGENT_DISABLED,
        EITHER,
        "The agent is off, or was switched off while answering; the output so far is kept.",
        "Ask another agent, or have the owner of this one switch it on.",
    ),
    ErrorRow(
        ErrorCode.RATE_LIMITED,
        SESSION,
        "Too many events; this one was not processed.",
        "Send it again after details.retry_after seconds.",
    ),
    ErrorRow(
        ErrorCode.TIMEOUT,
        EITHER,
        "The session, the tool result, the agent or the provider took too long.",
        "Try again.",
    ),
    ErrorRow(
        ErrorCode.BUSY,
        SESSION,
        "The server is at capacity.",
        "Send it again after details.retry_after seconds.",
    ),
    ErrorRow(
        ErrorCode.UNAVAILABLE,
        SESSION,
        "The server cannot reach its storage, or is stopping; nothing was stored.",
        "Send it again after details.retry_after seconds.",
    ),
    ErrorRow(
        ErrorCode.RESYNC,
        SESSION,
        "Events or pieces of text were lost and cannot be sent again.",
        "Load the chat's history and resume from its last seq.",
    ),
    ErrorRow(
        ErrorCode.INVALID_MEDIA,
        SESSION,
        "A media item is not valid base64, does not match its type, or is of an unsupported kind.",
        "Correct the media item, or declare its actual format.",
    ),
    ErrorRow(
        ErrorCode.CONTENT_NOT_FOUND,
        SESSION,
        "No content has that id, or the caller may not see it.",
        "Upload the content first.",
    ),
    ErrorRow(
        ErrorCode.QUEUE_FULL,
        SESSION,
        "The limit of waiting responses is reached.",
        "Wait for response.done.",
    ),
    ErrorRow(
        ErrorCode.NOTHING_TO_CANCEL,
        SESSION,
        "response.cancel does not match a running response of this session.",
        "Nothing: the response has ended.",
    ),
    ErrorRow(
        ErrorCode.UNKNOWN_CALL,
        SESSION,
        "tool.result does not match a pending call of this session.",
        "Answer each tool.call once.",
    ),
    ErrorRow(
        ErrorCode.UNSUPPORTED_MODALITY,
        SESSION,
        "The agent's model does not accept this kind of medium, or not in this format.",
        "Send a kind listed in the agent's capabilities.",
    ),
    ErrorRow(
        ErrorCode.UNSUPPORTED_PARAMETER,
        SESSION,
        "The answering model has no such option, or no tool has the name in tool_choice.",
        "Leave out the options listed in `details.parameters`.",
    ),
    ErrorRow(
        ErrorCode.PAYMENT_NOT_DUE,
        SESSION,
        "payment.submit, but no payment was required; nothing was charged.",
        "Wait for payment.required.",
    ),
)
