"""The server of another commit, to be measured next to the current one."""

from __future__ import annotations

import io
import subprocess
import tarfile
from typing import TYPE_CHECKING

from benchmarks.reference.installation import cache_folder
from benchmarks.servers import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def tree(revision: str) -> Path:
    """Return a folder with the files of a commit, extracted on first use.

    Raises subprocess.CalledProcessError if git does not know the commit.
    """
    commit = subprocess.run(  # noqa: S603 git of this machine
        ["git", "rev-parse", "--verify", f"{revision}^{{commit}}"],  # noqa: S607 as above
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    folder = cache_folder() / f"commit-{commit[:12]}"
    if not folder.exists():
        folder.mkdir(parents=True)
        archive = subprocess.run(  # noqa: S603 git of this machine
            ["git", "archive", commit],  # noqa: S607 as above
            cwd=ROOT,
            check=True,
            capture_output=True,
        ).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
    return folder
