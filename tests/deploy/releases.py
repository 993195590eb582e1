"""The release before this one, with whose code upgrades are tested."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Final

import pytest

from benchmarks import earlier
from tests.journeys.product import ROOT
from tests.programs import PROGRAM_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

# Until a release is tagged: the first commit whose databases this code must still upgrade.
FIRST: Final = "41c5effd45d11ca1d59f77a9faedcd577e3eba64"


def previous_release() -> Path:
    """Return a folder with the files of the newest tagged release before this commit."""
    described = subprocess.run(
        ["git", "describe", "--tags", "--abbrev=0", "--match=v[0-9]*", "HEAD~1"],  # noqa: S607 git of this machine
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=PROGRAM_SECONDS,
    )
    try:
        return earlier.tree(described.stdout.strip() or FIRST)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("the release before this one is not here: clone with the whole history")
