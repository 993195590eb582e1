"""The page of limits lists what is enforced and nothing else."""

from pathlib import Path

import pytest

from uamp.limits import limit_table

ROOT = Path(__file__).parents[2]
CODE = "\n".join(
    path.read_text()
    for package in ("uamp", "sessions_app")
    for path in sorted((ROOT / package).rglob("*.py"))
    if path.name != "limits.py"
)


@pytest.mark.parametrize("name", [name for name, _, _ in limit_table()])
def test_a_limit_is_read_by_the_code(name: str) -> None:
    assert f"limits.{name}" in CODE
