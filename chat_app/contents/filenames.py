"""Strip file names of anything that can mislead a person or a program."""

from __future__ import annotations

import re
import unicodedata
from itertools import groupby
from pathlib import PurePosixPath
from typing import Final

FILENAME_BYTES: Final = 255
"""The longest name in bytes of UTF-8, as on file systems."""

# Controls, lone surrogates, line and paragraph separators.
_DANGEROUS: Final = {"Cc", "Cs", "Zl", "Zp"}
# Embeddings, overrides and isolates reorder the text around them: `a\u202egpj.exe` reads a.exe.jpg.
# Joiners and marks stay, as Persian, Hindi and emoji need them.
_REORDERING: Final = {chr(c) for c in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
_ENDING: Final = re.compile(r"(?:\.tar)?\.[^.\s]{1,16}\Z", re.IGNORECASE)
_JOINER: Final = "\u200d"
_MARKS: Final = {"Mn", "Mc", "Me"}
_SKIN_TONES: Final = {chr(c) for c in range(0x1F3FB, 0x1F400)}


def clean_filename(name: str) -> str:
    """Return the last part of a path in at most FILENAME_BYTES; '' if nothing is left.

    A name that is too long keeps its extension.
    """
    kept = "".join(
        c
        for c in _composed(name)
        if c not in _REORDERING and unicodedata.category(c) not in _DANGEROUS
    )
    last = PurePosixPath(kept.replace("\\", "/")).name
    return _shortened(last) if last.strip(". ") else ""


def _composed(name: str) -> str:
    """Compose the letters and marks of a name, which some systems store separately.

    Characters that NFC would replace, such as the ideographs of Japanese names, stay.
    """
    runs = groupby(name, key=lambda c: unicodedata.normalize("NFC", c) == c)
    return "".join(
        unicodedata.normalize("NFC", "".join(run)) if is_composed else "".join(run)
        for is_composed, run in runs
    )


def _shortened(name: str) -> str:
    if len(name.encode()) <= FILENAME_BYTES:
        return name
    found = _ENDING.search(name)
    ending = found[0] if found is not None else ""
    stem = name.removesuffix(ending)
    most = len(stem.encode()[: FILENAME_BYTES - len(ending.encode())].decode(errors="ignore"))
    end = most
    while end and _is_one(stem[end - 1], stem[end : end + 1]):
        end -= 1
    return stem[: end or most] + ending


def _is_one(before: str, after: str) -> bool:
    """Return whether two characters are drawn as one: a name must not be cut between them."""
    return (
        _JOINER in {before, after}
        or after in _SKIN_TONES
        or (after != "" and unicodedata.category(after) in _MARKS)
    )
