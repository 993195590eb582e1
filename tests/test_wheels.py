"""The libraries as wheels, with types and licence and nothing else."""

from __future__ import annotations

import subprocess
import tomllib
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

from tests.programs import PROGRAM_SECONDS
from tests.wheels import LIBRARIES, ROOT, build_wheels, environment, metadata_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PACKAGES = ("uamp", "upp", "uap")
VENDORS = {"Provides-Extra: openai", "Provides-Extra: anthropic", "Provides-Extra: google"}
IMPORTED = """
import importlib, pkgutil, sys
from importlib.util import find_spec

here, absent = sys.argv[1].split(","), sys.argv[2].split(",")
assert [name for name in absent if find_spec(name)] == []
for name in here:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, f"{name}.", onerror=str):
        parts = set(module.name.split("."))
        optional = {"client", "command_line"} & parts
        # What connects agents with UAMP needs uamp, and its client.
        optional |= {"serving", "uamp_adapter"} & parts
        # What verifies signatures needs libraries that come with the client.
        verifies = {"signatures", "transparency", "logs"}
        verifies &= parts
        if verifies and not {"uamp.client", "uap.serving"} & set(here):
            continue
        if not optional or "uamp.client" in here or "uap.serving" in here:
            importlib.import_module(module.name)
    assert "required" not in package.__file__ and "environment" in package.__file__
print(*sorted(set(here)))
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Build all wheels."""
    return build_wheels(tmp_path_factory.mktemp("wheels"))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("project", LIBRARIES)
def test_a_wheel_holds_its_packages_their_types_and_the_licence(
    wheels: dict[str, Path], project: str
) -> None:
    package = project.rpartition("/")[2]
    with ZipFile(wheels[project]) as wheel:
        names = wheel.namelist()
        licence = next(name for name in names if name.endswith(".dist-info/licenses/LICENSE"))
        assert wheel.read(licence) == (ROOT / "LICENSE").read_bytes()
    packages = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    source = {str(path.relative_to(ROOT)) for path in (ROOT / package).rglob("*.py")}

    assert packages == {package}
    assert {f"{package}/py.typed"} | source <= set(names)
    assert {name for name in names if not name.endswith((".py", "/py.typed"))} == {
        name for name in names if ".dist-info/" in name
    }
    metadata = set(metadata_of(wheels[project]))
    assert "License-Expression: MIT" in metadata
    assert "Requires-Python: >=3.11" in metadata
    assert (metadata >= VENDORS) is (project != "packaging/uamp")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("projects", "here"),
    [
        (LIBRARIES, PACKAGES),
        (["packaging/uamp"], ["uamp"]),
        (["packaging/uamp"], ["uamp", "uamp.client"]),
        (["packaging/upp"], ["upp"]),
        (["packaging/upp", "packaging/uap"], ["upp", "uap"]),
        (LIBRARIES, ["uap", "uap.serving"]),
    ],
    ids=["together", "uamp", "client", "upp", "uap", "serving"],
)
def test_an_installed_library_needs_only_what_it_says(
    wheels: dict[str, Path], tmp_path: Path, projects: Sequence[str], here: Sequence[str]
) -> None:
    extra = "client" if "uamp.client" in here else "serve" if "uap.serving" in here else ""
    python = environment(tmp_path, [wheels[project] for project in projects], extra=extra)
    installed = {*PACKAGES} if projects == LIBRARIES else {*here}
    absent = [*({*PACKAGES} - installed), "django", "agents_app", "jsonschema"]
    absent += [] if extra else ["httpx2", "websockets", "click"]
    done = subprocess.run(  # noqa: S603 our own code
        [str(python), "-I", "-W", "error", "-c", IMPORTED, ",".join(here), ",".join(absent)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=PROGRAM_SECONDS,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == sorted(here)


@pytest.mark.long
def test_the_client_names_its_extra_where_it_is_not_installed(
    wheels: dict[str, Path], tmp_path: Path
) -> None:
    python = environment(tmp_path, [wheels["packaging/uamp"]])
    done = subprocess.run(  # noqa: S603 our own text
        [str(python), "-I", "-c", "import uamp.client"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=PROGRAM_SECONDS,
    )
    command = subprocess.run(  # noqa: S603 of that environment
        [str(python.with_name("uamp")), "--help"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PROGRAM_SECONDS,
    )

    for ended in (done, command):
        assert ended.returncode == 1
        assert "pip install 'uamp-server-uamp[client]'" in ended.stderr


@pytest.mark.long
def test_the_daemon_runs_from_a_wheel_and_names_its_extra_without_it(
    wheels: dict[str, Path], tmp_path: Path
) -> None:
    alone = environment(tmp_path / "alone", [wheels["packaging/upp"], wheels["packaging/uap"]])
    served = environment(tmp_path / "served", [*wheels.values()], extra="serve")

    without, with_it = (
        subprocess.run(  # noqa: S603 of that environment
            [str(python), "-I", "-m", "uap", "serve", "--help"],
            capture_output=True,
            text=True,
            check=False,
            timeout=PROGRAM_SECONDS,
        )
        for python in (alone, served)
    )

    assert without.returncode == 1
    assert "pip install 'uamp-server-uap[serve]'" in without.stderr
    assert (with_it.returncode, with_it.stderr) == (0, "")
    assert "--connect" in with_it.stdout


def test_the_versions_of_the_wheels_are_one() -> None:
    uamp, _, uap = (
        tomllib.loads((ROOT / at / "pyproject.toml").read_text())["project"] for at in LIBRARIES
    )
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

    assert {uamp["version"], uap["version"]} == {version}
    assert f"uamp-server-upp=={version}" in uap["dependencies"]
    assert uap["optional-dependencies"]["serve"] == [f"uamp-server-uamp[client]=={version}"]
