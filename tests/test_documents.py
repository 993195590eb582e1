"""The documents hold together: links and anchors lead somewhere, every decision is in the index."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
DECISIONS = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))


@cache
def prose(page: Path) -> str:
    """Return the text of a page without its examples."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def links(page: Path) -> list[str]:
    text = re.sub(r"`[^`\n]*`", "", prose(page))
    return re.findall(r"\]\(([^)\s]+)\)", text)


@cache
def anchors(page: Path) -> set[str]:
    """Return the names of a page's headings, as GitHub makes them."""
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} +(.+?) *$", prose(page), re.MULTILINE):
        words = re.sub(r"[^\w\- ]", "", heading.lower())
        name = words.replace(" ", "-")
        found.add(name)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{link}: there is no such file"
        assert target.is_relative_to(ROOT), link
        if anchor:
            assert anchor in anchors(target), f"{link}: there is no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_no_two_headings_of_one_name(page: Path) -> None:
    # The parts of a version in the changelog have the same names in each version.
    lines = re.findall(r"^## .+$", prose(page), re.MULTILINE)
    assert len(lines) == len(set(lines))


def test_the_readme_leads_to_every_page_for_readers() -> None:
    linked = {link.partition("#")[0] for link in links(ROOT / "README.md")}
    pages = {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")}
    assert pages <= linked


def test_every_decision_has_its_number_and_its_line_in_the_index() -> None:
    index = re.findall(r"^\| (\d+) \| \[(.+)\]\((.+)\) \|$", prose_of_index(), re.MULTILINE)
    titles = [re.findall(r"\A# (\d+)\. (.+)$", d.read_text(), re.MULTILINE)[0] for d in DECISIONS]
    assert index == [
        (*title, decision.name) for title, decision in zip(titles, DECISIONS, strict=True)
    ]
    numbers = [int(number) for number, _ in titles]
    assert numbers == [int(decision.name[:4]) for decision in DECISIONS]
    assert len(set(numbers)) == len(numbers)


def prose_of_index() -> str:
    return prose(ROOT / "docs" / "adr" / "README.md")


def test_a_decision_that_is_named_is_linked_or_there() -> None:
    there = {int(decision.name[:4]) for decision in DECISIONS}
    for page in PAGES:
        for number in re.findall(r"\bADR (\d+)", prose(page)):
            assert int(number) in there, f"{page.name}: ADR {number}"
