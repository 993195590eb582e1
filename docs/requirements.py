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
CONFORMANCE: Final = sorted((ROOT / "docs" / "conformance").glob("*.toml"))
PRINTED: Final = """\
`make docs` prints this page from `docs/conformance/{file}`. A test fails for a requirement with
neither a test nor a difference, and for a test that does not exist."""
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


class Divergence(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A difference between this repository and a requirement."""

    specified: str
    here: str
    why: str


class Requirement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A requirement of a specification; its id begins with the number of its section.

    The level is a word of RFC 2119, or empty for what the specification only describes.
    """

    id: str
    level: str = ""
    text: str
    tests: tuple[str, ...] = ()
    divergence: Divergence | None = None


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A section of a specification, with the RFC 2119 keywords in it."""

    number: str
    heading: str = ""
    words: tuple[str, ...] = ()
    requirements: tuple[Requirement, ...] = msgspec.field(name="requirement")


class Specification(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A specification, and its page: `notes` follow the tables.

    Docstrings of tests name its sections after `name`: `UAP §5.4`.
    """

    title: str
    name: str
    intro: str
    notes: str = ""
    sections: tuple[Section, ...] = msgspec.field(name="section")

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """The requirements of all sections."""
        return tuple(entry for section in self.sections for entry in section.requirements)


def guarantees() -> Guarantees:
    """Read guarantees.toml."""
    return msgspec.convert(tomllib.loads(GUARANTEES.read_text(encoding="utf-8")), Guarantees)


def specification(file: Path) -> Specification:
    """Read a file of docs/conformance."""
    return msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), Specification)


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


def conformance_page(file: Path, data: Specification) -> str:
    """Return the page of a specification."""
    has_levels = any(entry.level for entry in data.requirements)
    heads = ["Requirement", *(["Level"] if has_levels else []), "What", "Tests"]
    rows = [heads, ["---"] * len(heads)]
    for section in data.sections:
        if section.heading:
            number = f"§{section.number} " if section.number[0].isdigit() else ""
            rows.append([f"**{number}{section.heading}**", *[""] * (len(heads) - 1)])
        rows += [
            [entry.id, *([entry.level] if has_levels else []), entry.text, _links(entry)]
            for entry in section.requirements
        ]
    parts = [
        f"# {data.title}",
        data.intro.strip(),
        PRINTED.format(file=file.name),
        _table(rows),
    ]
    differences = [
        [entry.id, entry.divergence.specified, entry.divergence.here, entry.divergence.why]
        for entry in data.requirements
        if entry.divergence
    ]
    if differences:
        heads = ["Requirement", "The specification", "Here", "Why"]
        parts += [
            "## Where this server differs, and why",
            _table([heads, ["---"] * len(heads), *differences]),
        ]
    if data.notes:
        parts.append(data.notes.strip())
    return "\n\n".join(parts) + "\n"


def _links(entry: Requirement) -> str:
    names = [(test.partition("::")[2] or Path(test).name, test) for test in entry.tests]
    links = [f"[{name}](../../{test.partition('::')[0]})" for name, test in names]
    return ", ".join(links) or "see below"


def _table(rows: list[list[str]]) -> str:
    lines = ["|".join(f" {cell} " if cell else " " for cell in row) for row in rows]
    return "\n".join(f"|{line}|" for line in lines)


def pages() -> dict[Path, str]:
    """Return the printed pages by their files."""
    return {
        GUARANTEES.with_suffix(".md"): guarantees_page(guarantees()),
        **{
            file.with_suffix(".md"): conformance_page(file, specification(file))
            for file in CONFORMANCE
        },
    }


if __name__ == "__main__":
    for file, text in pages().items():
        file.write_text(text, encoding="utf-8")
