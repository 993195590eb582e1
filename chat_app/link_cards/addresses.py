"""The links of a text that get a card."""

from __future__ import annotations

import re
from typing import Final

CARDS: Final = 3
"""The most cards of one message."""
URL_CHARS: Final = 2048

# Links in code do not count. Possessive matching keeps long quotes from taking long.
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*+`", re.DOTALL)
_URL = re.compile(r"https?://[^\s<>\"`|\\^{}\[\]]++", re.IGNORECASE)
_AFTER = ".,;:!?\u2026'*_~"


def addresses_of(text: str) -> list[str]:
    """Return the first links in a message's Markdown, without fragments or duplicates."""
    urls: dict[str, None] = {}
    for match in _URL.finditer(_CODE.sub(" ", text)):
        # Trimming takes quadratic time.
        if len(match.group()) <= URL_CHARS:
            urls.setdefault(_trimmed(match.group()).partition("#")[0])
        if len(urls) == CARDS:
            break
    return list(urls)


def _trimmed(url: str) -> str:
    """Return a link without the punctuation that follows it in a sentence."""
    url = url.rstrip(_AFTER)
    while url.endswith(")") and url.count(")") > url.count("("):
        url = url[:-1].rstrip(_AFTER)
    return url
