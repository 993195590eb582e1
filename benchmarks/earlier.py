"""The server of another commit, to be measured next to the current one."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from pathlib import Path

from benchmarks.reference.installation import cache_folder
from benchmarks.servers import ROOT


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
        cache_folder().mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(  # noqa: S603 git of this machine
            ["git", "archive", commit],  # noqa: S607 as above
            cwd=ROOT,
            check=True,
            capture_output=True,
        ).stdout
        # Another process may do the same: each extracts a copy, and the first one is kept.
        with tempfile.TemporaryDirectory(
            dir=cache_folder(), prefix=f"{folder.name}-"
        ) as temporary_folder:
            with tarfile.open(fileobj=io.BytesIO(archive)) as files:
                files.extractall(Path(temporary_folder, "tree"), filter="data")
            try:
                Path(temporary_folder, "tree").rename(folder)
            except OSError:
                if not folder.exists():
                    raise
    return folder
