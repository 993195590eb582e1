"""Display names, status texts and titles: their characters, and how names are compared.

A name that looks like another person's misleads. Invisible characters are removed, names that mix
scripts are refused, also as the names of accounts that strangers make, and names are equal if they
have the same letters and digits in any case, width and spacing. Lookalike letters of different
scripts are not compared: pages show the unique username beside a display name.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Final

import regex

if TYPE_CHECKING:
    from collections.abc import Callable

NAME_CHARS: Final = 40
"""The most graphemes of a display name: what people see as characters."""
STATUS_CHARS: Final = 80
# A grapheme may have any number of code points, which the column bounds.
_NAME_POINTS: Final = 160
_STATUS_POINTS: Final = 400
_ZERO_WIDTH_JOINER: Final = "\u200d"
_VARIATION: Final = "\ufe0f"
# Marks on one letter; some languages write two or three.
_MARKS_MAX: Final = 4
_MARKS = regex.compile(rf"\p{{M}}{{{_MARKS_MAX + 1},}}")
# Scripts that may be mixed in one name: Japanese and Korean use several.
_TOGETHER: Final = (
    frozenset({"Latin"}),
    frozenset({"Han", "Hiragana", "Katakana", "Latin"}),
    frozenset({"Han", "Hangul", "Latin"}),
    frozenset({"Han", "Bopomofo", "Latin"}),
)
_SCRIPTS: Final = (
    "Latin", "Cyrillic", "Greek", "Han", "Hiragana", "Katakana", "Hangul", "Bopomofo", "Armenian",
    "Hebrew", "Arabic", "Georgian", "Cherokee", "Coptic", "Devanagari", "Thai",
)  # fmt: skip
_SCRIPT_OF = {name: regex.compile(rf"\p{{Script={name}}}") for name in _SCRIPTS}
_GRAPHEME = regex.compile(r"\X")


def _nowhere(_name: str) -> bool:
    return False


_is_elsewhere: Callable[[str], bool] = _nowhere


def names_elsewhere(is_elsewhere: Callable[[str], bool]) -> None:
    """Set the function that returns whether a name is that of a person of another server."""
    global _is_elsewhere  # noqa: PLW0603 one for the process
    _is_elsewhere = is_elsewhere


def is_name_elsewhere(name: str) -> bool:
    """Return whether a name is kept for the people of another server: `name@host` (ADR 66)."""
    return "@" in name and _is_elsewhere(name)


class InvalidName(ValueError):
    """The display name or status text is invalid; the message is for the person."""


def clean_name(text: str) -> str:
    """Return a display name without invisible characters; '' for none. Raises InvalidName."""
    name = _visible(text)
    _check_length(name, "A name", NAME_CHARS, _NAME_POINTS)
    if not name:
        return ""
    if not any(unicodedata.category(character)[0] in "LN" for character in name):
        raise InvalidName("A name needs a letter or a digit.")
    if mixes_scripts(name):
        raise InvalidName("Use letters from one script only, such as Latin or Cyrillic.")
    return name


def mixes_scripts(name: str) -> bool:
    """Return whether a name has letters of scripts that no language writes together."""
    scripts = {script for script, pattern in _SCRIPT_OF.items() if pattern.search(name)}
    return len(scripts) > 1 and not any(scripts <= together for together in _TOGETHER)


def clean_status(text: str) -> str:
    """Return a status text without invisible characters. Raises InvalidName."""
    status = _visible(text)
    _check_length(status, "A status", STATUS_CHARS, _STATUS_POINTS)
    return status


def clean_title(text: str) -> str:
    """Return a title of a chat or shared page on one line, without invisible characters."""
    return _visible(text)


def key_of(name: str) -> str:
    """Return the key by which names are compared: letters and digits in one case and width."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    letters = "".join(
        c for c in unicodedata.normalize("NFKC", folded) if unicodedata.category(c)[0] in "LNM"
    )
    return letters or folded


def graphemes(text: str) -> int:
    """Count the characters that people see in a text."""
    return len(_GRAPHEME.findall(text))


def _visible(text: str) -> str:
    """Return a text on one line without controls, direction marks and unassigned characters."""
    characters = []
    for at, character in enumerate(text):
        category = unicodedata.category(character)
        if character in {_ZERO_WIDTH_JOINER, _VARIATION}:
            # They join parts of an emoji, and belong to letters of some scripts.
            if at and unicodedata.category(text[at - 1]) in {"So", "Sk", "Mn", "Lo"}:
                characters.append(character)
        elif category in {"Cc", "Zl", "Zp"}:
            characters.append(" ")
        elif category[0] != "C":
            characters.append(character)
    return " ".join(unicodedata.normalize("NFC", "".join(characters)).split())


def _check_length(text: str, what: str, limit: int, points: int) -> None:
    if graphemes(text) > limit or len(text) > points:
        raise InvalidName(f"{what} may have at most {limit} characters.")
    if _MARKS.search(unicodedata.normalize("NFD", text)):
        raise InvalidName(f"{what} may have at most {_MARKS_MAX} marks on one letter.")
