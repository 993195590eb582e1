"""Installs official clients, each lock once, in a folder that the lock's hash names.

The folders are below XDG_CACHE_HOME (`~/.cache` by default) in `uamp-interop`.
`requirements/install` installs them, with pip's settings. `python -m tests.interop.installation`
installs all of them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.file_locks import lock_file

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUIREMENTS: Final = Path(__file__).parents[2] / "requirements"
INSTALL: Final = REQUIREMENTS / "install"
LOCKS: Final = REQUIREMENTS / "interop"
INSTALL_SECONDS: Final = 1800
CLIENTS: Final = (
    "openai",
    "anthropic",
    "frameworks",
    "litellm",
    "a2a",
    "a2a-03",
    "a2a-server",
    "remote-servers",
    "litellm-server",
    "ag-ui",
    "acp",
    "realtime",
    "webagents",
)


def python_of(name: str) -> Path:
    """Return the interpreter that has the clients of a lock; installs them where it has not.

    Processes that ask at a time wait for each other. Raises subprocess.CalledProcessError when the
    installation fails.
    """
    lock = LOCKS / f"{name}.txt"
    with _folder_of(name, lock) as folder:
        interpreter = folder / "bin" / "python"
        if not folder.exists():
            subprocess.run(  # noqa: S603 our own interpreter
                [sys.executable, "-m", "venv", str(folder)], check=True, timeout=INSTALL_SECONDS
            )
            subprocess.run(  # noqa: S603 our own script
                [str(INSTALL), str(lock), str(interpreter)],
                check=True,
                stdout=sys.stderr,
                timeout=INSTALL_SECONDS,
            )
    return interpreter


def node_folder() -> Path:
    """Return the folder in whose programs the JavaScript clients are found; installs them.

    Raises FileNotFoundError where there is no npm, and subprocess.CalledProcessError when it fails.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise FileNotFoundError("npm")
    with _folder_of("node", LOCKS / "node" / "package-lock.json") as folder:
        if not folder.exists():
            shutil.copytree(LOCKS / "node", folder)
            command = [npm, "ci", "--no-audit", "--no-fund", "--silent"]
            subprocess.run(  # noqa: S603 the program that the PATH names
                command, check=True, cwd=folder, stdout=sys.stderr, timeout=INSTALL_SECONDS
            )
    return folder


@contextmanager
def _folder_of(name: str, lock: Path) -> Iterator[Path]:
    """Give the folder of a lock to one process at a time; what was begun and not ended is gone."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "uamp-interop"
    base.mkdir(parents=True, exist_ok=True)
    folder = base / f"{name}-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"
    done = folder / "installed"
    with (base / f"{folder.name}.lock").open("w") as guard:
        lock_file(guard, INSTALL_SECONDS)
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
        yield folder
        done.touch()


if __name__ == "__main__":
    for client in CLIENTS:
        print(f"Clients of {client}: {python_of(client)}", file=sys.stderr, flush=True)  # noqa: T201 it reports
    print(f"Clients in JavaScript: {node_folder()}", file=sys.stderr, flush=True)  # noqa: T201 it reports
