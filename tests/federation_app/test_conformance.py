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
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TABLE.read_text().splitlines()
    if re.match(r"\| \d", line)
]
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
