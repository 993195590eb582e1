"""JSON encoding of values that only resemble JSON's own types.

Any mapping is an object and any str subclass is a string; a value that JSON cannot represent is an
error, never a guess.
"""

from collections.abc import Mapping
from typing import Any

import msgspec


def encode(value: Any) -> bytes:
    """Encode a value as JSON; raises TypeError if JSON cannot represent it."""
    try:
        return msgspec.json.encode(value, enc_hook=_plain)
    except (ValueError, RecursionError) as error:
        # A lone surrogate, an infinite number, or a list that contains itself.
        raise TypeError(str(error)) from error


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, str):
        return str.__str__(value)
    raise TypeError(f"{type(value).__name__} cannot be represented in JSON.")
