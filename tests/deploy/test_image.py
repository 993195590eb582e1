"""Containerfile builds from what the wheels have, and runs as everything else expects."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from http.server import BaseHTTPRequestHandler
from importlib.metadata import distribution
from typing import Final

import pytest
from packaging.requirements import Requirement

from tests import services
from tests.deploy.expected import PORT, ROOT, SETTINGS, check_command
from tests.http_server import LocalServer, QuietHandler, serving
from tests.programs import PROGRAM_SECONDS

pytestmark = pytest.mark.any_database

# Of the shell and of Python.
OF_OTHERS: Final = {"PATH", "LANG", "HOME"}
CONTAINERFILE: Final = re.sub(r"\\\n *", "", (ROOT / "Containerfile").read_text(encoding="utf-8"))
FINAL_STAGE: Final = CONTAINERFILE.rpartition("\nFROM ")[2]


def instruction(name: str) -> str:
    """Return the arguments of the one such instruction of the final stage."""
    (text,) = re.findall(rf"^{name} (.+)$", FINAL_STAGE, re.MULTILINE)
    return str(text)


def test_the_image_runs_the_server_as_a_user_without_rights() -> None:
    assert instruction("USER") == "10001:10001"
    assert instruction("STOPSIGNAL") == "SIGTERM"
    assert json.loads(instruction("ENTRYPOINT")) == ["uamp-server"]
    check_command(json.loads(instruction("CMD")))


def test_the_variables_of_the_image_are_settings_and_name_its_volume_and_port() -> None:
    variables = dict(item.split("=", 1) for item in instruction("ENV").split())

    assert variables.keys() - OF_OTHERS <= SETTINGS.keys()
    assert variables["DATA_DIR"] == instruction("VOLUME")
    assert int(instruction("EXPOSE")) == PORT
    assert "PORT" not in variables


def test_the_context_has_what_the_wheels_are_built_from_and_nothing_else() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    context = {line[1:] for line in lines if line.startswith("!")}
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    packages = wheel["targets"]["wheel"]["packages"]
    assets = wheel["targets"]["wheel"]["force-include"]
    projects = {"pyproject.toml", "README.md", "LICENSE", "packaging", "requirements"}

    assert "*" in lines
    assert context == {*packages, *assets, "uamp", "upp", "uap", *projects}
    assert {name for name in context if not (ROOT / name).exists()} == set()


def test_an_image_can_have_every_extra_of_the_wheel() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    locks = {name for name in extras if (ROOT / "requirements" / f"{name}.txt").is_file()}
    (downloaded,) = re.findall(r"for lock in ([\w ]+);", CONTAINERFILE)
    text = f"separated by commas: {', '.join(sorted(extras))}."

    assert set(downloaded.split()) == {"runtime", *locks}
    assert text in CONTAINERFILE
    assert text in (ROOT / "compose.yaml").read_text()
    assert text in (ROOT / "docs" / "deployment.md").read_text().replace("`", "")


def test_what_builds_the_wheels_is_what_the_tests_build_them_with() -> None:
    def pins(lock: str) -> dict[str, str]:
        text = (ROOT / "requirements" / lock).read_text(encoding="utf-8")
        blocks = re.findall(r"^([\w.-]+==\S+)(.*?)(?=^\w|\Z)", text, re.MULTILINE | re.DOTALL)
        return {pin: "".join(re.findall(r"sha256:\w+", rest)) for pin, rest in blocks}

    build, dev = pins("build.txt"), pins("dev.txt")
    waiting, required = ["hatchling"], set()
    while waiting:
        name = waiting.pop()
        required.add(name)
        for line in distribution(name).requires or ():
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name)

    assert {pin.partition("==")[0] for pin in build} == required
    assert build.items() <= dev.items()


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1)])
def test_the_health_check_reports_whether_the_server_is_ready(status: int, code: int) -> None:
    paths = []

    class Probe(QuietHandler, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(status)
            self.end_headers()

    with serving(LocalServer(Probe)) as server:
        assert run_health_check(server.server_address[1]) == code

    assert paths == ["/readyz"]


def test_the_health_check_fails_where_nothing_listens() -> None:
    assert run_health_check(services.free_port()) == 1


def run_health_check(port: int) -> int:
    """Return the exit code of the image's health check for a server on a port."""
    program, *arguments = json.loads(instruction("HEALTHCHECK").partition("CMD ")[2])
    assert program == "python"
    done = subprocess.run(  # noqa: S603 the program of our own image
        [sys.executable, *arguments],
        env={**os.environ, "PORT": str(port)},
        capture_output=True,
        check=False,
        timeout=PROGRAM_SECONDS,
    )
    return done.returncode
