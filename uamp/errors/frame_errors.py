"""Errors of frames that cannot be read, or hold an invalid event."""

from uamp.errors.codes import ErrorCode
from uamp.errors.rows import FIX, SESSION, SMALLER, ErrorRow

FRAME_ERRORS: tuple[ErrorRow, ...] = (
    ErrorRow(
        ErrorCode.FRAME_TOO_LARGE,
        SESSION,
        "The frame exceeds the limit of the socket, which is lower before authentication.",
        SMALLER,
        fatal=True,
        close_code=1009,
    ),
    ErrorRow(
        ErrorCode.BINARY_FRAME,
        SESSION,
        "A binary WebSocket frame.",
        "Send each event as one text frame.",
    ),
    ErrorRow(
        ErrorCode.INVALID_JSON,
        SESSION,
        "Not JSON, not UTF-8, truncated, a byte order mark, or data after the value.",
        FIX,
    ),
    ErrorRow(ErrorCode.DUPLICATE_KEY, SESSION, "An object has a duplicate member.", FIX),
    ErrorRow(
        ErrorCode.INVALID_NUMBER,
        SESSION,
        "NaN, Infinity, or a number too large for a double.",
        "Send larger numbers as strings.",
    ),
    ErrorRow(
        ErrorCode.INVALID_TEXT,
        SESSION,
        "A string contains NUL or a lone surrogate.",
        FIX,
    ),
    ErrorRow(ErrorCode.TOO_DEEP, SESSION, "Objects and arrays are nested too deeply.", FIX),
    ErrorRow(ErrorCode.TOO_MANY_VALUES, SESSION, "The frame holds too many JSON values.", FIX),
    ErrorRow(ErrorCode.TOO_MANY_MEMBERS, SESSION, "One object has too many members.", FIX),
    ErrorRow(ErrorCode.KEY_TOO_LONG, SESSION, "A member's name is too long.", FIX),
    ErrorRow(ErrorCode.STRING_TOO_LONG, SESSION, "A string or a media item is too long.", SMALLER),
    ErrorRow(
        ErrorCode.EVENT_TOO_LARGE,
        SESSION,
        "The event without its media, a tool result, a schema or a turn's text is too large.",
        SMALLER,
    ),
    ErrorRow(
        ErrorCode.INVALID_EVENT,
        SESSION,
        "Not an object, no type, a missing field, or a field of the wrong type.",
        "Compare the event with its schema; the message names the field.",
    ),
    ErrorRow(
        ErrorCode.TOO_MANY_ITEMS,
        SESSION,
        "One event has too many messages or tools.",
        "Send fewer.",
    ),
    ErrorRow(
        ErrorCode.TOO_MANY_BAD_FRAMES,
        SESSION,
        "Too many bad frames within a minute.",
        "Correct the client before it connects again.",
        fatal=True,
        close_code=1008,
    ),
    ErrorRow(
        ErrorCode.EVENT_ID_CONFLICT,
        SESSION,
        "An event_id was used before with a different body.",
        "Give every new event a new id; repeat an event unchanged.",
    ),
)
