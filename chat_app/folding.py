"""Fold texts that are compared: in searches, mentions and keywords. Pure."""

from __future__ import annotations

import re
import unicodedata
from typing import Final, Literal, TypeAlias

from uamp.blank_text import IGNORABLE

NormalizationForm: TypeAlias = Literal["NFC", "NFKC"]

_IGNORED: Final = re.compile(f"[{IGNORABLE}]+")
_LAST_OF_FIRST_PLANE: Final = "\uffff"
_MARKS: Final = [
    letter
    for letter in map(chr, range(0x80, 0x20000))
    if unicodedata.combining(unicodedata.normalize("NFKD", letter)[0])
]
"""The characters that normalization sorts. None of later planes is one."""
# `re` compares a letter with each character of the second plane in turn, so that only letters of
# that plane are compared with them.
_MARK: Final = "(?:[{}]|(?=[\U00010000-\U0001ffff])[{}])".format(
    "".join(mark for mark in _MARKS if mark <= _LAST_OF_FIRST_PLANE),
    "".join(mark for mark in _MARKS if mark > _LAST_OF_FIRST_PLANE),
)
_MARKS_RUN: Final = re.compile(f"({_MARK}{{30}}){_MARK}+")
_DOTTED_I: Final = "i\u0307"
_DOTLESS_I: Final = "\u0131"


def folded(text: str) -> str:
    """Return a text in one case, width and composition, without ignorable characters.

    The letters i with and without a dot are one, and so are ß and ss, and the forms of sigma.
    """
    if text.isascii():
        return text.lower()
    letters = composed(text).casefold().replace(_DOTTED_I, "i").replace(_DOTLESS_I, "i")
    return normalized("NFKC", letters)


def composed(text: str) -> str:
    """Return a text in one width and composition, without ignorable characters."""
    return normalized("NFKC", _IGNORED.sub("", text))


def normalized(form: NormalizationForm, text: str) -> str:
    """Return a text in a normal form, with at most 30 marks on a letter.

    No writing needs more, and sorting the marks of a letter takes quadratic time.
    """
    return unicodedata.normalize(form, _MARKS_RUN.sub(r"\1", text))


def folded_sql(text: str) -> str:
    """Return the PostgreSQL expression that folds the text of another expression.

    The expression is immutable, as an index requires. Letters that `lower` does not map in the
    database's locale keep their case.
    """
    letters = f"lower(normalize(regexp_replace({text}, '[{IGNORABLE}]+', '', 'g'), NFKD))"
    single = f"replace(replace({letters}, '\u00df', 'ss'), '{_DOTTED_I}', 'i')"
    one_form = f"normalize(translate({single}, '\u03c2{_DOTLESS_I}\u0345', '\u03c3i\u03b9'), NFKC)"
    is_ascii = f"octet_length({text}) = length({text})"
    return f'(CASE WHEN {is_ascii} THEN lower({text} COLLATE "C") ELSE {one_form} END)'
