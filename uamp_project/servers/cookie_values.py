"""Cookies in quotes, read in linear time on every Python that the server supports.

Before 3.11.10 and 3.12.6, `http.cookies` needs a time that grows with the square of the number of
backslashes in a quoted value (CVE-2024-7592): 64 KB of a stranger would hold the event loop for
seconds. Django and `SimpleCookie` both call its function `_unquote`.
"""

from __future__ import annotations

import re
from http import cookies
from typing import Final

_ESCAPED: Final = re.compile(r"\\(?:([0-3][0-7][0-7])|(.))")


def unquote(value: str | None) -> str | None:
    """Return what a quoted value stands for; other values are returned as they are."""
    if value is None or len(value) < 2 or value[0] != '"' or value[-1] != '"':  # noqa: PLR2004 two quotes
        return value
    return _ESCAPED.sub(_character, value[1:-1])


def read_in_linear_time() -> None:
    """Let `http.cookies` read quoted values with `unquote`."""
    cookies._unquote = unquote  # type: ignore[assignment]  # noqa: SLF001 the one place that all callers use


def _character(escaped: re.Match[str]) -> str:
    octal, other = escaped.groups()
    return chr(int(octal, 8)) if octal else other or ""
