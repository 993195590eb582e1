"""Installs each server of others once, in a folder that its lock's hash names, and runs it.

A folder is below XDG_CACHE_HOME (`~/.cache` by default) in `uamp-benchmarks`.
`requirements/install` installs, with pip's settings.
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
from benchmarks.servers import ServerProgram
from benchmarks.turn_runs import TEXT

HERE: Final = Path(__file__).resolve().parent
INSTALL: Final = HERE.parents[1] / "requirements" / "install"
INSTALL_SECONDS: Final = 1800
LOCK: Final = HERE / "requirements.txt"
LITELLM_LOCK: Final = HERE / "litellm.txt"
COMPLETIONS_PATH: Final = "/bench/chat/completions"
"""Where the reference takes Chat Completions."""


def cache_folder() -> Path:
    """Return the folder of what benchmarks keep from run to run."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "uamp-benchmarks"


def python(lock: Path = LOCK) -> str:
    """Return the interpreter that has what a lock names; installs it where it is not there yet.

    Raises subprocess.CalledProcessError when the installation fails.
    """
    name = "reference" if lock == LOCK else lock.stem
    folder = cache_folder() / f"{name}-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"
    interpreter = folder / "bin" / "python"
    done = folder / "installed"
    if not done.exists():
        print(f"Installing {name} into {folder} ...", file=sys.stderr, flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run(  # noqa: S603 our own interpreter
            [sys.executable, "-m", "venv", str(folder)], check=True, timeout=INSTALL_SECONDS
        )
        subprocess.run(  # noqa: S603 our own script
            [str(INSTALL), str(lock), str(interpreter)],
            check=True,
            stdout=sys.stderr,
            timeout=INSTALL_SECONDS,
        )
        done.touch()
    return str(interpreter)


def program() -> ServerProgram:
    """Return the reference's server with its stub model."""
    return ServerProgram(arguments=[str(HERE / "server.py")], python=python(), folder=HERE)


def litellm_program(key: str) -> ServerProgram:
    """Return LiteLLM's proxy with a stub model; it takes requests with this key."""
    return ServerProgram(
        arguments=[str(HERE / "litellm_server.py")],
        environment={**os.environ, "LITELLM_MASTER_KEY": key},
        python=python(LITELLM_LOCK),
        folder=HERE,
    )


def order() -> Order:
    """Return how a client asks it: one frame with the whole history, its cheapest mode.

    Any token opens its socket.
    """
    session = {"session": {"modalities": ["text"]}}
    return Order(
        port=0, path="/bench/uamp", token="any", session=session, text=TEXT, stateless=True
    )
