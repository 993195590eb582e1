"""Journeys run on the deployments that docs/journeys.md says."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROWS = re.findall(
    r"^\|.*\| `(tests/[\w/]+\.py)::(\w+)` \| (\w+) \|$",
    (ROOT / "docs" / "journeys.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)


@pytest.mark.parametrize(("module", "name", "runs_on"), ROWS, ids=[row[1] for row in ROWS])
def test_a_journey_runs_on_what_the_page_says(module: str, name: str, runs_on: str) -> None:
    tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    (arguments,) = (
        {argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)}
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
    )
    # Tests that start their own servers use neither.
    products = "both" if "deployment" in arguments else "one"
    assert products == runs_on


def test_every_journey_of_both_products_has_a_row() -> None:
    folder = ROOT / "tests" / "journeys" / "deployments"
    journeys = {
        (str(path.relative_to(ROOT)), node.name)
        for path in folder.glob("test_*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.AsyncFunctionDef) and node.name.startswith("test_")
    }
    assert journeys <= {(module, name) for module, name, _ in ROWS}
