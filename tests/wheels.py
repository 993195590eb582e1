"""Wheels of the server and its libraries, and environments with nothing else installed."""

from __future__ import annotations

import subprocess
import sys
import venv
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

from packaging.requirements import Requirement

from tests.programs import PROGRAM_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROOT = Path(__file__).resolve().parent.parent
SERVER = "."
LIBRARIES = ("packaging/uamp", "packaging/upp", "packaging/uap")


def build_wheels(directory: Path, projects: Iterable[str] = LIBRARIES) -> dict[str, Path]:
    """Build the wheels of projects, without a network, and return them by project."""
    wheels = {}
    for project in projects:
        out = directory / (project.rpartition("/")[2].strip(".") or "server")
        _pip("wheel", "--no-deps", "--no-build-isolation", "-w", str(out), str(ROOT / project))
        (wheels[project],) = out.glob("*.whl")
    return wheels


def metadata_of(wheel: Path) -> list[str]:
    """Return the lines of a wheel's metadata, without its description."""
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return archive.read(name).decode().partition("\n\n")[0].splitlines()


def environment(directory: Path, wheels: Sequence[Path], *, extra: str = "") -> Path:
    """Create an environment with these wheels and their dependencies; return its interpreter.

    `extra` installs them with the extra of that name.

    Dependencies are taken from the tests' own environment, package by package, so that neither a
    network nor anything the wheels do not declare is involved.
    """
    home, required = directory / "environment", directory / "required"
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    _pip("install", "--no-deps", *map(str, wheels), python=python)
    required.mkdir()
    for name in _requirements(wheels, extra):
        _expose(name, required)
    (site,) = home.glob("lib/python*/site-packages")
    (site / "required.pth").write_text(f"{required}\n")
    return python


def _pip(command: str, *arguments: str, python: Path | None = None) -> None:
    python_options = [] if python is None else ["--python", str(python)]
    quiet = ["-q", "--disable-pip-version-check", "--no-index"]
    subprocess.run(  # noqa: S603 our own arguments
        [sys.executable, "-m", "pip", *python_options, command, *quiet, *arguments],
        check=True,
        capture_output=True,
        text=True,
        timeout=PROGRAM_SECONDS,
    )


def _requirements(wheels: Iterable[Path], extra: str) -> set[str]:
    """Return the distributions required by wheels, directly or not, with at most one extra.

    The wheels themselves are left out.
    """
    own_packages = dict(_metadata(wheel) for wheel in wheels)
    waiting = [(line, extra) for lines in own_packages.values() for line in lines]
    seen: set[tuple[str, str]] = set()
    while waiting:
        line, chosen = waiting.pop()
        required = Requirement(line)
        if required.marker is not None and not required.marker.evaluate({"extra": chosen}):
            continue
        for more in required.extras or {""}:
            if (required.name, more) not in seen:
                seen.add((required.name, more))
                lines = own_packages.get(required.name)
                if lines is None:
                    lines = distribution(required.name).requires or []
                waiting += [(line, more) for line in lines]
    return {name for name, _ in seen} - own_packages.keys()


def _metadata(wheel: Path) -> tuple[str, list[str]]:
    """Return the name of a wheel's distribution, and its requirements."""
    lines = metadata_of(wheel)
    (name,) = (line.removeprefix("Name: ") for line in lines if line.startswith("Name: "))
    prefix = "Requires-Dist: "
    return name, [line.removeprefix(prefix) for line in lines if line.startswith(prefix)]


def _expose(name: str, directory: Path) -> None:
    for file in distribution(name).files or ():
        top = file.parts[0]
        link = directory / top
        if top not in {"..", "__pycache__"} and not link.exists():
            link.symlink_to(Path(str(distribution(name).locate_file(top))))
