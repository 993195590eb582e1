"""Values as JSON, also those that only resemble JSON's own.

A mapping is an object and a text is a text, whatever class they are of; what JSON has no
word for is an error, never a guess.
"""

from collections.abc import Mapping
from typing import Any

import msgspec


def encode(value: Any) -> bytes:
    """Return the JSON of a value; raises TypeError for what JSON has no word for."""
    try:
        return msgspec.json.encode(value, enc_hook=_plain)
    except (ValueError, RecursionError) as error:
        # A text that is none (half a character), a number without an end, a list inside itself.
        raise TypeError(str(error)) from error


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, str):
        return str.__str__(value)
    raise TypeError(f"{type(value).__name__} has no word in JSON.")
