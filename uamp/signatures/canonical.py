"""The canonical form of JSON (RFC 8785), and digests over it.

Members are sorted, numbers are written as in ECMAScript, and there is no white space: two programs
that read the same JSON produce the same bytes.
"""

import hashlib
from typing import Any

import rfc8785

from uamp.logs.chain import plain_form


def canonical(value: Any) -> bytes:
    """Return the canonical form of JSON values.

    Raises ValueError for values that no message's JSON contains: NaN, lone surrogates, and integers
    beyond 2**53 - 1.
    """
    return plain_form(value) or rfc8785.dumps(value)


def sha256_of(value: Any) -> str:
    """Return the SHA-256 of the canonical form of JSON values, in lower-case hex."""
    return hashlib.sha256(canonical(value)).hexdigest()


def text_sha256(text: str) -> str:
    """Return the SHA-256 of a text in UTF-8, in lower-case hex."""
    return hashlib.sha256(text.encode()).hexdigest()
