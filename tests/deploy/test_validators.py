"""The validators of the files in deploy/, as far as they are on the PATH.

One that is not installed has no test: none of them is a requirement of the tests.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Final

import pytest

from tests.agents_app.web_server import write_certificate
from tests.deploy.expected import ROOT
from tests.programs import PROGRAM_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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
    """Write a whole configuration around uamp.conf, with a certificate that is there."""
    write_certificate(folder / "certificate.pem", "chat.example.org")
    site = (DEPLOY / "nginx" / "uamp.conf").read_text(encoding="utf-8")
    site = re.sub(r"/etc/uamp/\w+\.pem", str(folder / "certificate.pem"), site)
    done = subprocess.run(
        ["nginx", "-v"],  # noqa: S607 from the PATH
        check=True,
        capture_output=True,
        text=True,
        timeout=PROGRAM_SECONDS,
    )
    version = re.findall(r"nginx/(\d+)\.(\d+)\.(\d+)", done.stderr)
    if [*map(int, version[0])] < [1, 25, 1]:
        # Old ones take HTTP/2 as an option of `listen`, as the file says.
        site = site.replace("    http2 on;\n", "").replace(":443 ssl;", ":443 ssl http2;")
        site = site.replace("listen 443 ssl;", "listen 443 ssl http2;")
    (folder / "uamp.conf").write_text(site)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    (folder / "nginx.conf").write_text(
        f"pid {folder}/pid; error_log stderr; events {{}}"
        f" http {{ access_log off; {paths} include {folder}/uamp.conf; }}"
    )
    return ["-t", "-p", str(folder), "-c", str(folder / "nginx.conf")]


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
    options = ["--set", "autoscaling.enabled=true", "--set", "settings.LOG_FORMAT=json"]
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
NEEDED: Final = {"kubernetes-validate": "helm"}
INSTALLED: Final = [
    name for name in VALIDATORS if shutil.which(name) and shutil.which(NEEDED.get(name, name))
]

if INSTALLED:

    @pytest.mark.parametrize("program", INSTALLED)
    def test_a_validator_accepts_the_file(program: str, tmp_path: Path) -> None:
        done = subprocess.run(  # noqa: S603 a validator, and our own files
            [program, *VALIDATORS[program](tmp_path)],
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
