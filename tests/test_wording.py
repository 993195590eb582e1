"""The interface and the documentation are in idiomatic English.

Phrases of a literal translation are refused, each with what to write instead.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest

from docs import words

if TYPE_CHECKING:
    from collections.abc import Iterator

# What is refused, an example of it, and what to write.
REFUSED: Final = (
    (r"goes on where it (?:broke|stopped)", "goes on where it broke", "resumes where it left off"),
    (r"\bwho (?:types|writes) and who\b", "who types and who reads", "who is typing"),
    (r"\bby another way\b", "came by another way", "sent through another protocol"),
    (r"\b[Pp]ut .{1,30} in the place of\b", "Put a key in the place of x", "Replace x"),
    (r"\bthat is none\b", "a number that is none", "an invalid number"),
    (r"^Of an? [a-z ]+ every\b", "Of a deleted message every read", "start with the subject"),
    (r"\bWhat is to be\b", "What is to be another", "Fields to change"),
    (r"\btakes? away\b", "an empty text takes away", "clears it"),
    (r"\bis no (?:path|text|list|number|file|string)\b", "is no text", "is not a text file"),
    (r"\bwhat is no\b", "Refuse what is no list", "Reject anything but a list"),
    (r"\bWhose an? \w+ \w+ is\b", "Whose a new content is", "Who owns a new file"),
    (r"\bhas a defect\b", "The server has a defect.", "Internal server error."),
    (r"^(?:Thinks|Writes|Runs)$", "Thinks", "Thinking…"),
    (r"\bShall (?:this|the|I|we|it)\b", "Shall this browser tell you", "Turn on notifications?"),
    (r"\bneed not ask\b", "Agents that need not ask", "Agents with standing approval"),
    (r"\bfor ever more\b", "waiting for ever more", "forever"),
    (r"\bgoes by itself\b", "It waits and goes by itself", "is sent automatically"),
    (r"\btoo little\.", "$0.01 too little.", "$0.01 short"),
    (r"^(?:Keep it|Good for|Ask me again)$", "Keep it", "Cancel"),
    (r"\bis (?:changed|removed)\.$", "echo is changed.", "echo updated."),
    (r"\bNothing (?:said|has that)\b", "Nothing said yet", "No messages yet"),
    (r"\bhas not been allowed to\b", "has not been allowed to notify", "aren't enabled"),
)
DOCUMENTS: Final = sorted(
    path.relative_to(words.ROOT).as_posix()
    for path in (*words.ROOT.glob("*.md"), *(words.ROOT / "docs").rglob("*.md"))
)


def sentences(text: str) -> Iterator[str]:
    """Yield the prose of a page of Markdown, without its code."""
    prose = re.sub(r"^(```|~~~).*?^\1|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)
    for line in prose.splitlines():
        yield from (piece.strip() for piece in re.split(r"(?<=[.!?:;])\s|\|", line))


def odd(texts: Iterator[str]) -> list[tuple[str, str]]:
    """Return the texts that are refused, with what to write instead."""
    return [
        (text, better)
        for text in texts
        for pattern, _, better in REFUSED
        if re.search(pattern, text)
    ]


@pytest.mark.parametrize(("pattern", "example", "better"), REFUSED)
def test_a_pattern_finds_its_example_and_not_what_to_write(
    pattern: str, example: str, better: str
) -> None:
    assert re.search(pattern, example)
    assert not re.search(pattern, better)


@pytest.mark.parametrize("domain", ["django", "djangojs"])
def test_the_interface_is_worded_idiomatically(domain: str) -> None:
    texts = (
        text
        for message in words.catalogue_of(domain, "de")
        for text in ([message.id] if isinstance(message.id, str) else message.id)
    )
    assert odd(texts) == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_page_of_the_documentation_is_worded_idiomatically(name: str) -> None:
    assert odd(sentences((words.ROOT / name).read_text(encoding="utf-8"))) == []
