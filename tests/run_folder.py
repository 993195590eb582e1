"""Files created once per test run and shared or copied by its workers."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.file_locks import lock_file
from tests.settings import RUN_FOLDER

# `tests/run.py` keeps one for all of its runs.
SHARED_FOLDER = Path(os.environ.get("SHARED_FOLDER") or RUN_FOLDER)


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Let only one process of the run at a time into the block."""
    with (RUN_FOLDER / f"{name}.lock").open("w") as file:
        lock_file(file)
        yield


def copy_of(
    name: str, make: Callable[[Path], None], target: Path, *, folder: Path = RUN_FOLDER
) -> None:
    """Copy a folder to `target`; the first process that needs it creates it in `folder`."""
    copied_folder = folder / name
    with locked(name):
        if not copied_folder.exists():
            making = folder / f"{name}.making"
            shutil.rmtree(making, ignore_errors=True)
            making.mkdir()
            make(making)
            making.rename(copied_folder)
    shutil.copytree(copied_folder, target, dirs_exist_ok=True)
