"""Blank text: nothing but white space and characters that are not drawn."""

import re
from typing import Final

# The characters with the property Default_Ignorable_Code_Point: soft hyphens, joiners, direction
# marks, fillers, variation selectors and tags.
IGNORABLE: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""A range of characters, for a regular expression."""
# Control characters are not drawn either, and the braille pattern without dots is an empty cell.
_DRAWN: Final = re.compile(rf"[^\s\x00-\x1f\x7f-\x9f\u2800{IGNORABLE}]")


def is_blank(text: str) -> bool:
    """Return whether a text shows nothing."""
    return _DRAWN.search(text) is None


__all__ = ["IGNORABLE", "is_blank"]
