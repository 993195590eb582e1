"""The template tag `face`: initials on a colour that a name decides.

`static/chat/person/looks.js` draws the same on the pages with scripts; a test compares both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import regex
from django import template
from django.utils.html import format_html

if TYPE_CHECKING:
    from django.utils.safestring import SafeString

TONES: Final = 12
_FNV_OFFSET: Final = 0x811C9DC5
_FNV_PRIME: Final = 0x01000193
_MASK: Final = 0xFFFFFFFF
_SEPARATORS: Final = regex.compile(r"[\s._\-@,]+")
_LETTER: Final = regex.compile(r"[\p{L}\p{N}]")
_GRAPHEME: Final = regex.compile(r"\X")
register = template.Library()


def initials_of(name: str) -> str:
    """Return the initials of the first two words, else the first two letters of the only one."""
    words = [
        letters
        for word in _SEPARATORS.split(name)
        if (letters := [part for part in _GRAPHEME.findall(word) if _LETTER.search(part)])
    ]
    chosen = [words[0][0], words[1][0]] if len(words) > 1 else words[0][:2] if words else []
    return "".join(chosen).upper() or "?"


def tone_of(name: str) -> int:
    """Return the number of a name's tone (FNV-1a)."""
    digest = _FNV_OFFSET
    for character in name:
        digest = (digest ^ ord(character)) * _FNV_PRIME & _MASK
    digest ^= digest >> 15
    return digest % TONES


@register.simple_tag
def face(name: str, kind: str = "user") -> SafeString:
    """Return the avatar of a `user`, an `agent` or a `chat` without a picture."""
    return format_html(
        '<span class="avatar avatar-{} tone-{}" aria-hidden="true">'
        '<span class="avatar-text">{}</span></span>',
        kind, tone_of(name), initials_of(name),
    )  # fmt: skip
