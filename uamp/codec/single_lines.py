"""Keeps JSON on one line for readers that split at more than line feeds.

JSON escapes control characters, but not U+0085, U+2028 and U+2029. Event streams and NDJSON end
lines at CR and LF only, yet many readers (`str.splitlines` of Python among them) split at these
three as well, and then parse half an object.
"""

from typing import Final

_ESCAPES: Final = tuple(
    (char.encode(), f"\\u{ord(char):04x}".encode()) for char in "\x85\u2028\u2029"
)


def single_lines(text: bytes) -> bytes:
    """Escape the line separators that are inside the JSON strings of UTF-8 text.

    The parsed values stay the same. Line feeds, which end lines and events, are kept.
    """
    if text.isascii():
        return text
    for separator, escape in _ESCAPES:
        text = text.replace(separator, escape)
    return text
