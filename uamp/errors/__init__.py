"""Error codes, and the exceptions that carry them (UAMP §6.3, §6.8, §7.2, §14.2).

`codes` lists all codes; `http_status` has the status of each for transports over HTTP; `table`
describes each code; `exceptions` holds the three exception classes. The events that report an error
to the peer are in `uamp.events`.
"""

from uamp.errors.codes import ErrorCode, PaymentErrorCode
from uamp.errors.exceptions import LocalProtocolError, ProtocolError, RemoteProtocolError
from uamp.errors.rows import ErrorRow
from uamp.errors.table import ERROR_CODES

__all__ = [
    "ERROR_CODES",
    "ErrorCode",
    "ErrorRow",
    "LocalProtocolError",
    "PaymentErrorCode",
    "ProtocolError",
    "RemoteProtocolError",
]
