"""Every error code with its event, its consequence and its remedy.

Each mistake that a peer can make has one row here, and the server never sends a code without a row.
"""

from uamp.errors.answer_errors import ANSWER_ERRORS
from uamp.errors.codes import ErrorCode
from uamp.errors.frame_errors import FRAME_ERRORS
from uamp.errors.rows import ErrorRow
from uamp.errors.session_errors import SESSION_ERRORS

ERROR_CODES: dict[ErrorCode, ErrorRow] = {
    row.code: row for row in (*FRAME_ERRORS, *SESSION_ERRORS, *ANSWER_ERRORS)
}
