"""Installs each other server once, in a folder named after its lock's hash, and runs it.

The folders are in `uamp-benchmarks` below XDG_CACHE_HOME (`~/.cache` by default).
`requirements/install` installs them with pip's settings.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from benchmarks.clients.turns import Order
from benchmarks.servers import ServerProgram
from benchmarks.turn_runs import TEXT

HERE: Final = Path(__file__).resolve().parent
INSTALL: Final = HERE.parents[1] / "requirements" / "install"
INSTALL_SECONDS: Final = 1800
LOCK: Final = HERE / "requirements.txt"
LITELLM_LOCK: Final = HERE.parents[1] / "requirements" / "interop" / "litellm-server.txt"
COMPLETIONS_PATH: Final = "/bench/chat/completions"
"""The path of the reference's Chat Completions."""


def cache_folder() -> Path:
    """Return the folder of data that benchmarks keep between runs."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "uamp-benchmarks"


def python(lock: Path = LOCK) -> str:
    """Return an interpreter with the packages of a lock, installing them if necessary.

    Raises subprocess.CalledProcessError if the installation fails.
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
    """Return LiteLLM's proxy with a stub model; it accepts requests with this key."""
    return ServerProgram(
        arguments=[str(HERE / "litellm_server.py")],
        environment={**os.environ, "LITELLM_MASTER_KEY": key},
        python=python(LITELLM_LOCK),
        folder=HERE,
    )


def order() -> Order:
    """Return a client's order for it: one frame with the whole history, its cheapest mode.

    Its socket accepts any token.
    """
    session = {"session": {"modalities": ["text"]}}
    return Order(
        port=0, path="/bench/uamp", token="any", session=session, text=TEXT, stateless=True
    )
