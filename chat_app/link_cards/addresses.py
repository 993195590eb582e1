"""The links of a text that a card is made of."""

from __future__ import annotations

import re
from typing import Final

CARDS: Final = 3
"""Cards of one message."""
URL_CHARS: Final = 2048

# Code is not a link. Each part is read once: a text of quotes must not take long.
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*+`", re.DOTALL)
_URL = re.compile(r"https?://[^\s<>\"`|\\^{}\[\]]++", re.IGNORECASE)
_AFTER = ".,;:!?\u2026'*_~"


def addresses_of(text: str) -> list[str]:
    """Return the first links of a message's Markdown, without fragments, each once."""
    found: dict[str, None] = {}
    for match in _URL.finditer(_CODE.sub(" ", text)):
        url = _trimmed(match.group()).partition("#")[0]
        if len(url) <= URL_CHARS:
            found.setdefault(url)
        if len(found) == CARDS:
            break
    return list(found)


def _trimmed(url: str) -> str:
    """Return a link without what a sentence puts behind it."""
    url = url.rstrip(_AFTER)
    while url.endswith(")") and url.count(")") > url.count("("):
        url = url[:-1].rstrip(_AFTER)
    return url
