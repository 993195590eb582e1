"""Print docs/guarantees.md and docs/conformance/*.md from the requirements beside them.

`python -m docs.requirements` (part of `make docs`) reads guarantees.toml and conformance/*.toml. A
requirement names its tests by their pytest ids, and a test in JavaScript by its file. Instead of,
or beside, tests it may have a divergence with its reason; a guarantee may have a gap.
"""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).resolve().parent.parent
GUARANTEES: Final = ROOT / "docs" / "guarantees.toml"
LONG: Final = "pytest.mark.long"


class Guarantee(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A promise of the server; all texts are Markdown."""

    id: int
    section: str
    title: str
    promise: str = ""
    mechanism: str
    settings: str = ""
    notes: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    gap: str = ""


class Guarantees(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All guarantees, in the order of their page."""

    intro: str
    entries: tuple[Guarantee, ...] = msgspec.field(name="guarantee")


def guarantees() -> Guarantees:
    """Read guarantees.toml."""
    return msgspec.convert(tomllib.loads(GUARANTEES.read_text(encoding="utf-8")), Guarantees)


@cache
def tests_of(path: str) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return the test functions of a module by their names."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    body = ast.parse((ROOT / path).read_text(encoding="utf-8")).body
    return {
        node.name: node
        for node in body
        if isinstance(node, functions) and node.name.startswith("test_")
    }


def exists(test: str) -> bool:
    """Return whether a pytest id, or a file of tests in JavaScript, is in the repository."""
    path, _, name = test.partition("::")
    if not (ROOT / path).is_file() or not path.startswith("tests/"):
        return False
    return name in tests_of(path) if name else path.endswith(".test.mjs")


def is_long(test: str) -> bool:
    """Return whether a test, or its whole module, runs only in `make test-all`."""
    path, _, name = test.partition("::")
    if not name or not exists(test):
        return False
    source = (ROOT / path).read_text(encoding="utf-8")
    marks = re.findall(r"^pytestmark = .+$", source, re.MULTILINE)
    own = map(ast.unparse, tests_of(path)[name].decorator_list)
    return LONG in own or any(LONG in mark for mark in marks)


def guarantees_page(data: Guarantees) -> str:
    """Return docs/guarantees.md."""
    parts = ["# Guarantees", data.intro.strip()]
    section = ""
    for entry in data.entries:
        if entry.section != section:
            section = entry.section
            parts.append(f"## {section}")
        parts.append(f"### {entry.id}. {entry.title}")
        if entry.promise:
            parts.append(entry.promise.strip())
        parts.append("\n".join(_bullets(entry)))
    return "\n\n".join(parts) + "\n"


def _bullets(entry: Guarantee) -> Iterator[str]:
    yield _bullet(f"Mechanism: {entry.mechanism}")
    if entry.settings:
        yield _bullet(f"Settings: {entry.settings}")
    yield from map(_bullet, entry.notes)
    if entry.tests:
        names = [f"`{test}`{' (long)' if is_long(test) else ''}" for test in entry.tests]
        yield _bullet("Tests: " + ",\n".join(names))
    if entry.gap:
        yield _bullet(f"Gap: {entry.gap}")


def _bullet(text: str) -> str:
    return "- " + text.strip().replace("\n", "\n  ")


def pages() -> dict[Path, str]:
    """Return the printed pages by their files."""
    return {GUARANTEES.with_suffix(".md"): guarantees_page(guarantees())}


if __name__ == "__main__":
    for file, text in pages().items():
        file.write_text(text, encoding="utf-8")
