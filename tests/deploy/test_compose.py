"""compose.yaml: two profiles whose services start in order, confined, and stop in time."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml

from agents_app.providers import local_servers
from tests.deploy.expected import (
    PORT,
    QUEUES,
    ROOT,
    SETTINGS,
    STOP_SECONDS_MAX,
    check_command,
)
from tests.programs import PROGRAM_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.any_database

# libpq reads it.
OF_OTHERS: Final = {"PGPASSFILE"}
FILE: Final[dict[str, Any]] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: Final[dict[str, dict[str, Any]]] = FILE["services"]
SERVERS: Final = {
    name: service
    for name, service in SERVICES.items()
    if service["image"] == "uamp-server" and "entrypoint" not in service
}
TEAM: Final = {
    name: service for name, service in SERVERS.items() if service["profiles"] == ["team"]
}
WEBS: Final = {name for name, service in TEAM.items() if service["command"] == ["web"]}


def test_small_is_one_container_and_team_has_every_process() -> None:
    small = {name for name, service in SERVICES.items() if service["profiles"] == ["small"]}
    queues = {
        service["command"][1] for service in TEAM.values() if service["command"][0] == "worker"
    }

    assert small == {"server"}
    assert set(SERVICES) - small - TEAM.keys() == {"proxy", "secrets", "database", "redis"}
    assert len(WEBS) == 2
    assert queues == QUEUES
    assert SERVICES["server"]["command"] == ["up"]


@pytest.mark.parametrize("name", SERVERS)
def test_a_service_runs_a_command_with_settings_of_the_server(name: str) -> None:
    service = SERVERS[name]

    check_command(service["command"])
    assert service["environment"].keys() - OF_OTHERS <= SETTINGS.keys()
    assert int(service["environment"]["PORT"]) == PORT
    folders = [volume.split(":")[1] for volume in service["volumes"]]
    assert service["environment"]["DATA_DIR"] in folders


@pytest.mark.parametrize("name", SERVERS)
def test_a_service_has_time_to_stop(name: str) -> None:
    service = SERVERS[name]

    assert service["stop_signal"] == "SIGTERM"
    assert seconds(service["stop_grace_period"]) > STOP_SECONDS_MAX
    assert seconds(SERVICES["proxy"]["stop_grace_period"]) > STOP_SECONDS_MAX


def seconds(text: str) -> int:
    return int(text.removesuffix("s"))


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_confined(name: str) -> None:
    service = SERVICES[name]

    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service.get("cap_add", []) == (["NET_BIND_SERVICE"] if name == "proxy" else [])
    assert not service.get("privileged")


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_waits_for_what_can_be_waited_for(name: str) -> None:
    for target, how in SERVICES[name].get("depends_on", {}).items():
        other = SERVICES[target]
        assert other["profiles"] == SERVICES[name]["profiles"]
        if how["condition"] == "service_healthy":
            # The image of the server has a check of its own.
            assert not other.get("healthcheck", {}).get("disable")
            assert "healthcheck" in other or target in WEBS
        else:
            assert how["condition"] == "service_completed_successfully"
            assert other["restart"] == "no"


def test_only_the_proxy_and_the_small_server_are_published() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}

    assert published.keys() == {"proxy", "server"}
    assert published["server"] == [f"127.0.0.1:${{PORT:-{PORT}}}:{PORT}"]
    assert {"443:443", "443:443/udp"} <= set(published["proxy"])
    assert FILE["networks"]["inside"] == {"internal": True}
    for name in ("database", "redis"):
        assert SERVICES[name]["networks"] == ["inside"]
    assert SERVICES["secrets"]["network_mode"] == "none"


def test_the_processes_of_a_team_share_their_environment_and_files() -> None:
    first, *others = TEAM.values()

    for service in others:
        assert service["environment"] == first["environment"]
        assert service["volumes"] == first["volumes"]
    address = f"postgres://{SERVICES['database']['environment']['POSTGRES_USER']}@database:5432/"
    assert first["environment"]["DATABASE_URL"].startswith(address)
    assert first["environment"]["HTTPS"] == "1"


def test_the_database_has_connections_for_every_process() -> None:
    (option,) = [word for word in SERVICES["database"]["command"] if "max_connections" in word]
    each = int(SETTINGS["DB_THREADS"]) + 8
    # A supervisor has a few; `--scale tools=2` and another web process have as many as the others.
    processes = len(TEAM) + 3

    assert processes * each + 10 < int(option.removeprefix("max_connections="))


def test_small_reaches_the_model_servers_of_its_machine() -> None:
    server = SERVICES["server"]
    (host,) = {place.partition(":")[0] for place in server["extra_hosts"]}
    variable = "UAMP_MODEL_ALLOW_HOSTS"

    assert server["extra_hosts"] == [f"{host}:host-gateway"]
    assert host in local_servers._HOSTS
    # `environment` comes before `env_file`: without the braces, .env could not change it.
    places = ",".join(f"{host}:{port}" for port in local_servers._PORTS)
    assert server["environment"][variable] == f"${{{variable}:-{places}}}"


def test_the_proxy_knows_every_web_process() -> None:
    variables = SERVICES["proxy"]["environment"]
    caddyfile = (ROOT / "deploy" / "caddy" / "Caddyfile").read_text(encoding="utf-8")

    assert set(variables["UPSTREAMS"].split()) == {f"{name}:{PORT}" for name in WEBS}
    # Envelopes over gRPC go without TLS only within a machine, so not between containers.
    assert set(re.findall(r"\{\$(\w+)", caddyfile)) - {"GRPC"} == variables.keys()


def test_the_password_is_made_once_and_for_both_sides(tmp_path: Path) -> None:
    (program,) = SERVICES["secrets"]["command"]

    def run() -> dict[str, str]:
        subprocess.run(  # noqa: S603 the program of our own service
            [sys.executable, "-c", program.replace('"/data"', repr(str(tmp_path)))],
            check=True,
            timeout=PROGRAM_SECONDS,
        )
        return {path.name: path.read_text() for path in tmp_path.iterdir()}

    files = run()
    password = files["password"]

    assert files == {"password": password, "pgpass": f"database:5432:*:uamp:{password}\n"}
    assert len(password) > 40
    # libpq ignores a file that others may read; the database has another user.
    assert (tmp_path / "pgpass").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "password").stat().st_mode & 0o777 == 0o444
    assert run() == files
    (tmp_path / "pgpass").unlink()
    assert run()["password"] != password
