"""Installs the reference once, in a folder that the lock's hash names, and says how to run it.

The folder is below XDG_CACHE_HOME (`~/.cache` by default) in `uamp-benchmarks`. pip installs, with
the settings of this machine.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from benchmarks.client import Order
from benchmarks.servers import Program
from benchmarks.turn_runs import TEXT

HERE: Final = Path(__file__).resolve().parent
LOCK: Final = HERE / "requirements.txt"


def cache_folder() -> Path:
    """Return the folder of what benchmarks keep from run to run."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "uamp-benchmarks"


def python() -> str:
    """Return the interpreter that has the reference; installs it where it is not there yet.

    Raises subprocess.CalledProcessError when pip fails.
    """
    folder = cache_folder() / f"reference-{hashlib.sha256(LOCK.read_bytes()).hexdigest()[:12]}"
    interpreter = folder / "bin" / "python"
    done = folder / "installed"
    if not done.exists():
        print(f"Installing the reference into {folder} ...", file=sys.stderr, flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)  # noqa: S603 our own interpreter
        command = [str(interpreter), "-m", "pip", "install", "-q", "--require-hashes"]
        subprocess.run([*command, "-r", str(LOCK)], check=True, stdout=sys.stderr)  # noqa: S603 our own interpreter
        done.touch()
    return str(interpreter)


def program() -> Program:
    """Return the reference's server with its stub model."""
    return Program(arguments=[str(HERE / "server.py")], python=python(), folder=HERE)


def order() -> Order:
    """Return how a client asks it: one frame with the whole history, its cheapest mode.

    Any token opens its socket.
    """
    session = {"session": {"modalities": ["text"]}}
    return Order(
        port=0, path="/bench/uamp", token="any", session=session, text=TEXT, stateless=True
    )
