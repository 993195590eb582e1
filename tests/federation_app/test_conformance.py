"""docs/conformance/envelopes.md holds what it says."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TABLE = HERE.parent.parent / "docs" / "conformance" / "envelopes.md"
# Every sentence of the specification with a word of RFC 2119, by its section.
NORMATIVE = {
    ("4.2", "MUST"): 1,
    ("5", "MUST NOT"): 1,
    ("5", "SHOULD"): 1,
    ("6.1", "MUST"): 1,
    ("6.2", "SHOULD"): 1,
    ("6.3", "MUST"): 2,
}
REQUIREMENTS, DIVERGENCES = TABLE.read_text().split("## Where this server differs")


def rows_of(text: str) -> list[list[str]]:
    """Return the cells of a table's rows that begin with a section."""
    lines = [line for line in text.splitlines() if re.match(r"\| \d", line)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


ROWS = rows_of(REQUIREMENTS)
DIFFERENCES = rows_of(DIVERGENCES)
TESTS = {
    f"{path.relative_to(HERE).as_posix()}::{node.name}"
    for path in HERE.rglob("test_*.py")
    for node in ast.parse(path.read_text()).body
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_requirement_is_shown_by_tests(row: list[str]) -> None:
    _, _, what, tests = row
    named = re.findall(r"`([^`]+)`", tests)

    assert what
    assert named
    assert [test for test in named if test not in TESTS] == []


def test_every_normative_sentence_has_a_row() -> None:
    found = Counter((name.partition("-")[0], level) for name, level, *_ in ROWS if level)

    assert found == NORMATIVE


@pytest.mark.parametrize("row", DIFFERENCES, ids=lambda row: row[0])
def test_a_difference_is_one_of_a_requirement_and_has_a_reason(row: list[str]) -> None:
    name, specified, here, why = row

    assert name in {requirement for requirement, *_ in ROWS}
    assert specified
    assert here
    assert why


def test_a_requirement_has_one_row_in_each_table() -> None:
    for rows in (ROWS, DIFFERENCES):
        counts = Counter(name for name, *_ in rows)
        assert [name for name, count in counts.items() if count > 1] == []
