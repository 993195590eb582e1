"""The weight of a text: how many tokens a model counts for it, as an estimate and at most.

The unit is a quarter of a token. Charges for uncounted text use the estimate (`weight`),
reservations the maximum (`max_weight`): a reservation that is too high is released.
"""

from __future__ import annotations

import re
import string
from typing import Final

CHARS_PER_TOKEN: Final = 4
"""An estimate for ASCII text, replaced by the provider's count once there is one."""
_SAVED: Final = 2
"""How much less a Cyrillic letter weighs than another character that is not ASCII."""
_IN_WORDS: Final = (string.ascii_letters + string.whitespace).encode()
_CYRILLIC: Final = re.compile("[\u0400-\u052f]+")
_RARE: Final = re.compile(
    # Not: Latin, Greek, Cyrillic, Hebrew, Arabic, punctuation, Chinese, Japanese, Korean.
    r"[^\x00-\x7f\u00a0-\u052f\u0590-\u06ff\u2000-\u206f\u3000-\u33ff\u4e00-\u9fff\uac00-\ud7a3"
    r"\uff00-\uffef\ufffd]+"
)


def weight(text: str) -> int:
    """Return a text's weight in quarter tokens.

    It is one per ASCII character, two per Cyrillic letter, and four per other character. Chinese,
    Japanese and emoji take about one token per character, and so do Greek, Arabic and Hebrew in
    older vocabularies. Each piece of a running answer is weighed, so ASCII text is not scanned.
    """
    if text.isascii():
        return len(text)
    ascii_chars = len(text.encode("ascii", "ignore"))
    others = CHARS_PER_TOKEN * (len(text) - ascii_chars)
    return ascii_chars + others - _SAVED * sum(map(len, _CYRILLIC.findall(text)))


def max_weight(text: str) -> int:
    """Return the weight of a text, in quarter tokens, for which a reservation is made.

    Some vendors count a token for each digit or punctuation mark, and one for each byte of a
    character that their models rarely read, such as an emoji or a Burmese letter. Only words are
    taken to have four letters per token.
    """
    if text.isascii():
        return len(text) + _beyond_words(text.encode())
    plain = text.encode("ascii", "ignore")
    rare = "".join(_RARE.findall(text))
    common = len(text) - len(plain) - len(rare)
    tokens = common + len(rare.encode("utf-8", "surrogatepass"))
    return len(plain) + _beyond_words(plain) + CHARS_PER_TOKEN * tokens


def _beyond_words(text: bytes) -> int:
    """Return the weight that digits and punctuation of an ASCII text have in excess of letters."""
    return (CHARS_PER_TOKEN - 1) * len(text.translate(None, _IN_WORDS))
