"""The programs of faults start on their own, without what pytest sets up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import PROGRAM_SECONDS

pytestmark = pytest.mark.any_database
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["daemon_matrix", "kill_matrix", "noticed_deaths"])
def test_a_program_says_how_to_use_it(name: str) -> None:
    done = subprocess.run(  # noqa: S603 our own interpreter
        [sys.executable, "-m", f"tests.faults.{name}", "--help"],
        cwd=ROOT,
        env={"PATH": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=PROGRAM_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert f"usage: python -m tests.faults.{name}" in done.stdout
