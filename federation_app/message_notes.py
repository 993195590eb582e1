"""Notes at the end of a message that is not whole: what is missing, and which server has it."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_SHORTENED: Final = "Shortened; the full text is on"
_NOTES: Final = re.compile(rf"(?:\n\n\[(?:{_SHORTENED}|[0-9]+ files?, on) [^\s\]]+\])+\Z")
_NOTES_CHARS: Final = 1000
"""The end of a text that is searched for notes."""


def missing_note(count: int, host: str) -> str:
    """Return the line of a message that says where its other files are; "" for none."""
    if not count:
        return ""
    return f"[1 file, on {host}]" if count == 1 else f"[{count} files, on {host}]"


def with_note(text: str, note: str) -> str:
    """Return a text with a note at its end."""
    return f"{text}\n\n{note}".strip() if note else text


def shorten(text: str, host: str, *, room: int, size: Callable[[str], int]) -> str:
    """Return as much of a text as has room, with the note that its full text is on a host.

    Its notes stay. A text that was shortened before keeps the host that it names.
    """
    body, notes = _split(text)
    if _SHORTENED not in notes:
        notes = f"\n\n[{_SHORTENED} {host}]{notes}"
    chars = bisect_right(range(1, len(body) + 1), room, key=lambda end: size(body[:end] + notes))
    return body[:chars] + notes if chars else notes.lstrip("\n")


def is_same_text(text: str, full: str) -> bool:
    """Return whether a text is another one, whole or shortened."""
    body, notes = _split(text)
    return text == full or (_SHORTENED in notes and full.startswith(body))


def _split(text: str) -> tuple[str, str]:
    """Return a text without its notes, and the notes."""
    match = _NOTES.search(text, max(0, len(text) - _NOTES_CHARS))
    at = len(text) if match is None else match.start()
    return text[:at], text[at:]
