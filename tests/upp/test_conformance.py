"""docs/conformance/upp.md holds what it says."""

import ast
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TABLE = HERE.parent.parent / "docs" / "conformance" / "upp.md"
ROWS = re.findall(r"^\| (\d[\d.]*) \| (.+?) \| (.+) \|$", TABLE.read_text(), flags=re.MULTILINE)
TESTS = {
    f"{path.relative_to(HERE).as_posix()}::{node.name}"
    for path in HERE.rglob("test_*.py")
    for node in ast.parse(path.read_text()).body
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_what_the_table_says_is_shown_by_tests(row: tuple[str, str, str]) -> None:
    named = re.findall(r"`([^`]+)`", row[2])

    assert named
    assert [test for test in named if test not in TESTS] == []


def test_the_table_is_in_the_order_of_the_specification() -> None:
    order = [[int(part) for part in section.split(".")] for section, *_ in ROWS]

    assert len(order) > 20
    assert order == sorted(order)
