"""The units of systemd: they run commands of the server, confined, and give them time to stop."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Final

import pytest

from tests.deploy.expected import QUEUES, ROOT, SETTINGS, STOP_SECONDS_MAX, check_command
from uamp_project.management.commands.web import CONNECTIONS

pytestmark = pytest.mark.any_database

PROGRAM: Final = "/opt/uamp-server/bin/uamp-server"
# Each instance of a unit has a name: a port, a queue.
INSTANCES: Final = {
    "uamp-server.service": {""},
    "uamp-web@.service": {"8000"},
    "uamp-worker@.service": QUEUES,
}
CONFINED: Final = {
    "NoNewPrivileges": "yes",
    "CapabilityBoundingSet": "",
    "ProtectSystem": "strict",
    "ProtectHome": "yes",
    "PrivateTmp": "yes",
    "PrivateDevices": "yes",
    "RestrictNamespaces": "yes",
    "SystemCallArchitectures": "native",
    "UMask": "0077",
}


def unit(name: str) -> dict[str, list[str]]:
    """Return the values of each key of a unit; no key is in two sections."""
    values = defaultdict(list)
    for line in (ROOT / "deploy" / "systemd" / name).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith(("#", "[")):
            key, _, value = line.partition("=")
            values[key].append(value)
    return dict(values)


def settings_of(section: str) -> dict[str, str]:
    """Return the settings that a section of the page lists, as systemd reads them from a file."""
    page = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    (text,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    (block,) = re.findall(r"^```ini\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line for line in block.splitlines() if line and not line.startswith(("#", ";"))]
    return dict(line.split("=", 1) for line in lines)


@pytest.mark.parametrize(
    ("section", "names"),
    [
        ("One machine", ["uamp-server.service"]),
        ("Several processes and machines", ["uamp-web@.service", "uamp-worker@.service"]),
        ("Files in a bucket", ["uamp-server.service"]),
    ],
)
def test_the_settings_of_the_page_fit_a_file_of_the_unit(section: str, names: list[str]) -> None:
    listed = settings_of(section)

    assert listed
    assert listed.keys() <= SETTINGS.keys()
    # systemd takes a comment behind a value as a part of the value.
    assert not [value for value in listed.values() if re.search(r"\s", value)]
    for name in names:
        variables = dict(text.split("=", 1) for text in unit(name)["Environment"])
        assert {key: listed.get(key, value) for key, value in variables.items()} == variables


def test_there_is_a_unit_for_one_machine_and_two_for_several() -> None:
    assert {path.name for path in (ROOT / "deploy" / "systemd").iterdir()} == set(INSTANCES)


@pytest.mark.parametrize(
    ("name", "instance"),
    [(name, instance) for name, instances in INSTANCES.items() for instance in sorted(instances)],
)
def test_a_unit_runs_a_command_of_the_server(name: str, instance: str) -> None:
    (line,) = unit(name)["ExecStart"]
    program, *arguments = line.replace("%i", instance).split()

    assert program == PROGRAM
    check_command(arguments)


@pytest.mark.parametrize("name", INSTANCES)
def test_a_unit_sets_settings_and_may_write_where_its_data_is(name: str) -> None:
    values = unit(name)
    variables = dict(text.split("=", 1) for text in values["Environment"])
    writable = [*values.get("ReadWritePaths", ())]
    writable += [f"/var/lib/{folder}" for folder in values.get("StateDirectory", ())]

    assert variables.keys() <= SETTINGS.keys()
    assert variables["DATA_DIR"] in writable
    assert values["WorkingDirectory"] == [variables["DATA_DIR"]]
    # With a `-` before it, a server without its settings would start.
    assert values["EnvironmentFile"] == ["/etc/uamp-server/environment"]


@pytest.mark.parametrize("name", INSTANCES)
def test_a_unit_is_confined_and_has_time_to_stop(name: str) -> None:
    values = unit(name)

    assert {key: values[key] for key in CONFINED} == {
        key: [value] for key, value in CONFINED.items()
    }
    assert values["User"] == ["uamp-server"]
    # The server ends its workers itself; those that get SIGTERM too would be started again.
    assert values["KillMode"] == ["mixed"]
    assert values["KillSignal"] == ["SIGTERM"]
    assert int(values["TimeoutStopSec"][0]) > STOP_SECONDS_MAX


@pytest.mark.parametrize("name", ["uamp-server.service", "uamp-web@.service"])
def test_a_unit_that_serves_may_open_a_file_twice_for_each_connection(name: str) -> None:
    assert int(unit(name)["LimitNOFILE"][0]) >= 2 * CONNECTIONS
