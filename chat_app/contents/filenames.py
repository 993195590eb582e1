"""Strip file names of anything that can mislead a person or a program."""

from __future__ import annotations

import unicodedata
from itertools import groupby
from pathlib import PurePosixPath
from typing import Final

import regex

FILENAME_BYTES: Final = 255
"""The longest name in bytes of UTF-8, as on file systems."""

# Controls, lone surrogates, line and paragraph separators.
_DANGEROUS: Final = {"Cc", "Cs", "Zl", "Zp"}
# Embeddings, overrides and isolates reorder the text around them: `a\u202egpj.exe` reads a.exe.jpg.
# Joiners and marks stay, as Persian, Hindi and emoji need them.
_REORDERING: Final = {chr(c) for c in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
_ENDING: Final = regex.compile(r"(?:\.tar)?\.[^.\s]{1,32}\Z", regex.IGNORECASE)
_DRAWN_AS_ONE: Final = regex.compile(r"\X")


def clean_filename(name: str) -> str:
    """Return the last part of a path in at most FILENAME_BYTES; '' if nothing is left.

    A name that is too long keeps its extension.
    """
    printable = "".join(
        c
        for c in _composed(name)
        if c not in _REORDERING and unicodedata.category(c) not in _DANGEROUS
    )
    last = PurePosixPath(printable.replace("\\", "/")).name
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
    match = _ENDING.search(name)
    ending = match[0] if match is not None else ""
    stem = name.removesuffix(ending)
    room = FILENAME_BYTES - len(ending.encode())
    end = 0
    for cluster in _DRAWN_AS_ONE.finditer(stem[:FILENAME_BYTES]):
        if len(stem[: cluster.end()].encode()) > room:
            break
        end = cluster.end()
    return (stem[:end] or stem.encode()[:room].decode(errors="ignore")) + ending
