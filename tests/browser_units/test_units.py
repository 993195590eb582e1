"""The modules of the pages that know no DOM, under node's own test runner."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests import services
from tests.programs import PROGRAM_SECONDS

FOLDER = Path(__file__).parent


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.test.mjs")), ids=lambda file: file.stem)
def test_modules_of_the_pages(file: Path) -> None:
    node = services.node()
    if node is None:
        pytest.skip("no node: `make install` installs one")
    run = subprocess.run(  # noqa: S603 the program that was found
        [node, "--test", "--test-reporter=spec", str(file)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PROGRAM_SECONDS,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "pass 0" not in run.stdout
