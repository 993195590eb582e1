"""Wheels of the libraries, and environments in which nothing else is installed."""

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
TOGETHER, *ALONE = ".", "packaging/uamp", "packaging/upp", "packaging/uap"


def build_wheels(directory: Path, projects: Iterable[str] = (TOGETHER, *ALONE)) -> dict[str, Path]:
    """Build the wheels of projects, without a network, and return each by its project."""
    wheels = {}
    for project in projects:
        out = directory / (project.rpartition("/")[2].strip(".") or "together")
        _pip("wheel", "--no-deps", "--no-build-isolation", "-w", str(out), str(ROOT / project))
        (wheels[project],) = out.glob("*.whl")
    return wheels


def metadata_of(wheel: Path) -> list[str]:
    """Return the lines of a wheel's metadata, without its description."""
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return archive.read(name).decode().partition("\n\n")[0].splitlines()


def environment(directory: Path, wheels: Sequence[Path], *, extra: str = "") -> Path:
    """Make an environment of these wheels and what they require; return its interpreter.

    With `extra` they are installed with the extra of that name.

    What they require comes out of the environment of the tests, package by package, so that there
    is no network and nothing that the wheels do not name.
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
    chosen = [] if python is None else ["--python", str(python)]
    quiet = ["-q", "--disable-pip-version-check", "--no-index"]
    subprocess.run(  # noqa: S603 our own arguments
        [sys.executable, "-m", "pip", *chosen, command, *quiet, *arguments],
        check=True,
        capture_output=True,
        text=True,
        timeout=PROGRAM_SECONDS,
    )


def _requirements(wheels: Iterable[Path], extra: str) -> set[str]:
    """Return the distributions that wheels need with one extra or none, and those of these."""
    lines = [line for wheel in wheels for line in metadata_of(wheel)]
    own = {line.removeprefix("Name: ") for line in lines if line.startswith("Name: ")}
    wanted = [line for line in lines if line.startswith("Requires-Dist: ")]
    waiting = [(line.removeprefix("Requires-Dist: "), extra) for line in wanted]
    found: set[str] = set()
    while waiting:
        line, chosen = waiting.pop()
        wanted_one = Requirement(line)
        here = wanted_one.marker is None or wanted_one.marker.evaluate({"extra": chosen})
        if here and wanted_one.name not in found | own:
            found.add(wanted_one.name)
            extras = sorted(wanted_one.extras) or [""]
            requires = distribution(wanted_one.name).requires or ()
            waiting += [(more, one) for more in requires for one in extras]
    return found


def _expose(name: str, directory: Path) -> None:
    for file in distribution(name).files or ():
        top = file.parts[0]
        link = directory / top
        if top not in {"..", "__pycache__"} and not link.exists():
            link.symlink_to(Path(str(distribution(name).locate_file(top))))
