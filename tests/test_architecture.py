"""The import rule of docs/architecture.md, and rules of the tree that no other tool checks."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = (
    "agents_app",
    "chat_app",
    "payments_app",
    "sessions_app",
    "uamp",
    "uamp_project",
    "uap",
    "upp",
)
MODULES = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
SHAPELESS_NAMES = {"utils", "helpers", "common", "core", "misc", "base_classes"}


def test_every_import_contract_is_kept() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(  # noqa: S603 of our own environment
        [program], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout


def test_every_room_is_under_the_contracts() -> None:
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests", "benchmarks"}

    assert rooms == set(ROOMS)


def test_no_module_has_a_name_that_says_nothing() -> None:
    found = [str(path) for path in MODULES if path.stem in SHAPELESS_NAMES]

    assert found == []


def test_only_fanout_sends_to_groups() -> None:
    callers = {
        path.relative_to(ROOT).as_posix()
        for path in MODULES
        if any(
            isinstance(node, ast.Attribute) and node.attr == "group_send"
            for node in ast.walk(ast.parse(path.read_text()))
        )
    }

    assert callers == {"chat_app/fanout.py"}


@pytest.mark.parametrize("name", ["bootstrap", "runtime", "dev"])
def test_locks_pin_hashes_and_name_no_registry(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text()

    assert re.findall(r"://|--index|--extra-index|--find-links", text) == []
    for requirement in re.split(r"\n(?=\S)", text.strip()):
        assert "==" in requirement.splitlines()[0]
        assert "--hash=sha256:" in requirement
