"""docs/conformance/uap.md holds what it says."""

import ast
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TABLE = HERE.parent.parent / "docs" / "conformance" / "uap.md"
LEVELS = {"", "MUST", "MUST NOT", "SHALL NOT", "SHOULD", "OPTIONAL"}
# Every sentence of the specification with a word of BCP 14 about an implementation, by its section.
NORMATIVE = {
    "1.4": ["MUST", "MUST NOT", "MUST NOT"],
    "2.1": ["MUST NOT"],
    "2.4": ["SHALL NOT"],
    "2.6": ["MUST NOT"],
    "5.5": ["MUST"],
    "7.1": ["OPTIONAL"],
    "7.2": ["OPTIONAL"],
    "8.1": ["MUST NOT"],
    "8.4": ["SHOULD"],
    "8.5": ["MUST"],
    "11.3": ["MUST"],
    "12.3": ["MUST", "MUST", "MUST NOT", "SHOULD"],
    "14.2": [*["MUST"] * 8, *["MUST NOT"] * 4],
    "15.3": ["MUST", "SHOULD"],
}

ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TABLE.read_text().splitlines()
    if re.match(r"\| \d", line)
]
DOCSTRINGS = {
    f"{path.name}::{node.name}": ast.get_docstring(node) or ""
    for path in HERE.glob("test_*.py")
    for node in ast.parse(path.read_text()).body
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
}


def sections(docstring: str) -> set[str]:
    """Return the sections that a docstring names, as 5.4."""
    return set(re.findall(r"§(\d+\.\d+)", docstring))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_requirement_is_shown_by_tests_that_name_it(row: list[str]) -> None:
    requirement, level, what, tests = row
    section = requirement.split("-")[0]
    named = re.findall(r"`([^`]+)`", tests)

    assert level in LEVELS
    assert what
    assert named
    assert [test for test in named if test not in DOCSTRINGS] == []
    assert [test for test in named if section not in sections(DOCSTRINGS[test])] == []


def test_each_requirement_is_there_once_and_in_order() -> None:
    names = [row[0] for row in ROWS]

    assert len(set(names)) == len(names)
    order = [[int(part) for part in name.split("-")[0].split(".")] for name in names]
    assert order == sorted(order)


def test_every_normative_sentence_has_its_row() -> None:
    found: dict[str, list[str]] = {}
    for requirement, level, *_ in ROWS:
        if level:
            found.setdefault(requirement.split("-")[0], []).append(level)

    assert {section: sorted(levels) for section, levels in found.items()} == NORMATIVE


def test_a_test_that_names_a_must_is_in_the_table() -> None:
    table = TABLE.read_text()

    assert [
        name
        for name, docstring in DOCSTRINGS.items()
        if re.search(r"UAP §.*(MUST|SHOULD|SHALL)", docstring) and name not in table
    ] == []
