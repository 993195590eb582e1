"""Another language verifies what this server signs: node, by its own crypto alone."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import services
from tests.programs import PROGRAM_SECONDS

PROGRAM = Path(__file__).with_suffix(".mjs")
BROWSER = Path(__file__).with_name("browser.mjs")


def verified_by_node(documents: list[dict[str, Any]], program: Path = PROGRAM) -> list[Any]:
    """Return the verdict of a Node program about each document."""
    node = services.node()
    if node is None:
        pytest.skip("no node: `make install` installs one")
    run = subprocess.run(  # noqa: S603 our own program
        [node, str(program)],
        input=json.dumps(documents),
        capture_output=True,
        text=True,
        check=False,
        timeout=PROGRAM_SECONDS,
    )
    assert run.returncode == 0, run.stderr
    verdicts: list[Any] = json.loads(run.stdout)
    assert len(verdicts) == len(documents)
    return verdicts
