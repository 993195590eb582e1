"""The validators of the files in deploy/.

They come from requirements/dev.txt or the PATH. One that is missing is a skip, also where every
service is required: no program of the server needs them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests import services
from tests.deploy.expected import ROOT
from tests.deploy.proxies import write_nginx_files
from tests.programs import PROGRAM_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.any_database

DEPLOY: Final = ROOT / "deploy"
CHART: Final = DEPLOY / "helm" / "uamp-server"


def hadolint(_: Path) -> list[str]:
    return [str(ROOT / "Containerfile")]


def check_jsonschema(_: Path) -> list[str]:
    return ["--builtin-schema", "vendor.compose-spec", str(ROOT / "compose.yaml")]


def caddy(_: Path) -> list[str]:
    return ["validate", "--adapter", "caddyfile", "--config", str(DEPLOY / "caddy" / "Caddyfile")]


def nginx(folder: Path) -> list[str]:
    path = write_nginx_files(folder, services.free_port())
    return ["-t", "-p", str(folder), "-c", str(path)]


def systemd_analyze(folder: Path) -> list[str]:
    """Copy the units as instances that run a program which is there."""
    for path in (DEPLOY / "systemd").iterdir():
        name = path.name.replace("web@", "web@8000").replace("worker@", "worker@tools")
        text = re.sub(
            r"^ExecStart=\S+", "ExecStart=/bin/true", path.read_text(), flags=re.MULTILINE
        )
        (folder / name).write_text(text)
    return ["verify", "--man=no", "--recursive-errors=no", *map(str, sorted(folder.iterdir()))]


def helm(_: Path) -> list[str]:
    return ["lint", "--strict", str(CHART)]


def kubernetes_validate(folder: Path) -> list[str]:
    """Render the chart with everything that is off by default."""
    values = ["autoscaling", "workers.tools.autoscaling", "workers.webhooks.autoscaling"]
    options = ["--kube-version", "1.30", "--set", "settings.LOG_FORMAT=json"]
    options += [word for value in values for word in ("--set", f"{value}.enabled=true")]
    rendered = subprocess.run(  # noqa: S603 our own chart
        ["helm", "template", "uamp", str(CHART), *options],  # noqa: S607 from the PATH
        check=True,
        capture_output=True,
        timeout=PROGRAM_SECONDS,
    )
    (folder / "rendered.yaml").write_bytes(rendered.stdout)
    return ["--strict", str(folder / "rendered.yaml")]


VALIDATORS: Final[dict[str, Callable[[Path], list[str]]]] = {
    "hadolint": hadolint,
    "check-jsonschema": check_jsonschema,
    "caddy": caddy,
    "nginx": nginx,
    "systemd-analyze": systemd_analyze,
    "helm": helm,
    "kubernetes-validate": kubernetes_validate,
}
NEEDED: Final = {"kubernetes-validate": ("helm",)}
PATH: Final = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])


def is_installed(name: str) -> bool:
    """Return whether a validator is installed, with what it needs itself."""
    return all(shutil.which(program, path=PATH) for program in (name, *NEEDED.get(name, ())))


@pytest.mark.parametrize("program", VALIDATORS)
def test_a_validator_accepts_the_file(program: str, tmp_path: Path) -> None:
    if not is_installed(program):
        pytest.skip(f"{services.OPTIONAL_PROGRAM}: {program}")
    done = subprocess.run(  # noqa: S603 a validator, and our own files
        [shutil.which(program, path=PATH) or program, *VALIDATORS[program](tmp_path)],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PROGRAM_SECONDS,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    if program == "systemd-analyze":
        # It only warns of a key that it does not know. Other units are not ours.
        assert [line for line in done.stderr.splitlines() if "uamp" in line] == []
