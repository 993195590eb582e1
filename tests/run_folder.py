"""What is made once in a run of tests and shared or copied by its workers."""

import fcntl
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.settings import RUN_FOLDER


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Let one process of the run at a time into the block."""
    with (RUN_FOLDER / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def copy_of(name: str, make: Callable[[Path], None], target: Path) -> None:
    """Copy a folder into `target`; the first process of the run that needs it makes it."""
    made = RUN_FOLDER / name
    with locked(name):
        if not made.exists():
            making = RUN_FOLDER / f"{name}.making"
            shutil.rmtree(making, ignore_errors=True)
            making.mkdir()
            make(making)
            making.rename(made)
    shutil.copytree(made, target, dirs_exist_ok=True)
