"""The server installed from its wheel alone, in another folder, as a newcomer runs it."""

from __future__ import annotations

import json
import os
import re
import runpy
import signal
import subprocess
import time
import tomllib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from zipfile import ZipFile

import httpx
import pytest

from tests import services
from tests.programs import PROGRAM_SECONDS, Program
from tests.wheels import LIBRARIES, ROOT, SERVER, build_wheels, environment, metadata_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

START_SECONDS: Final = 180
END_SECONDS: Final = 90
# The server's packages at the top level of site-packages.
PACKAGES: Final = {
    *("agents_app", "audit_app", "chat_app", "federation_app", "gateway_app", "payments_app"),
    *("sessions_app", "signing_app", "telemetry", "uamp_project"),
}
ENDED: Final = {"completed", "failed", "cancelled", "incomplete"}
CSV: Final = b"month,sales\njan,3\nfeb,5\n"

pytestmark = pytest.mark.any_database


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Build the wheels of the server and its libraries."""
    return build_wheels(tmp_path_factory.mktemp("wheels"), [SERVER, *LIBRARIES])


@pytest.fixture(scope="module")
def program(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the server without extras; return its command."""
    folder = tmp_path_factory.mktemp("installed")
    return environment(folder, [*wheels.values()]).with_name("uamp-server")


def variables(home: Path, **more: str) -> dict[str, str]:
    """Return an environment with only the variables that every shell sets."""
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", **more}


def test_the_wheel_has_the_packages_and_assets_and_none_of_the_libraries(
    wheels: dict[str, Path],
) -> None:
    with ZipFile(wheels[SERVER]) as wheel:
        names = set(wheel.namelist())
    modules = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
    }
    assets = {
        f"uamp_project/assets/{path.relative_to(ROOT).as_posix()}"
        for folder in ("static", "templates")
        for path in (ROOT / folder).rglob("*")
        if path.is_file()
    }

    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == PACKAGES
    assert modules | assets <= names
    assert {"uamp_project/assets/static.digest"} <= names
    assert any(name.endswith("/de/LC_MESSAGES/django.mo") for name in names)


def test_the_wheel_has_its_bill_of_materials(wheels: dict[str, Path]) -> None:
    with ZipFile(wheels[SERVER]) as wheel:
        (name,) = (name for name in wheel.namelist() if "/sboms/" in name)
        bill = json.loads(wheel.read(name))
    assert name.endswith(".dist-info/sboms/uamp-server.cdx.json")
    assert bill == runpy.run_path(str(ROOT / "packaging" / "bill_of_materials.py"))["document"]()


def test_the_wheel_requires_what_the_lock_has_and_leaves_extras_out(
    wheels: dict[str, Path],
) -> None:
    lines = metadata_of(wheels[SERVER])
    required = {
        line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-Dist")
    }
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    listed = (ROOT / "requirements" / "runtime.in").read_text().splitlines()
    expected = {re.sub(r"[<>=].*", "", line) for line in listed if not line.startswith("#")}
    names = {re.split(r"[<>=;]", line)[0].strip() for line in required}

    assert {f"uamp-server-{name}" for name in ("uamp[client]", "upp", "uap")} <= names
    assert f"uamp-server-upp=={version}" in required
    assert names - {name for name in names if name.startswith("uamp-server-")} == expected | {
        "pi-heif",
        "stripe",
        "django-storages[s3]",
        "hypercorn[h3]",
    }
    assert {line for line in required if "extra ==" in line} == {
        "matplotlib; extra == 'charts'",
        "pi-heif; extra == 'heic'",
        "hypercorn[h3]<0.19,>=0.18; extra == 'peers'",
        "django-storages[s3]; extra == 's3'",
        "stripe; extra == 'stripe'",
    }


@contextmanager
def running(program: Path, folder: Path, *arguments: str) -> Iterator[tuple[httpx.Client, Any]]:
    """Run the server in a new folder until it is ready; yield a client and the process."""
    port = services.free_port()
    with (
        Program(
            *(str(program), *arguments, "--port", str(port)),
            log=folder / "output.txt",
            cwd=folder,
            env=variables(folder),
        ) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as web,
    ):
        # It says how to sign in once it listens.
        process.wait_until(
            lambda: is_ready(web) and "Press Ctrl-C to stop." in process.output,
            seconds=START_SECONDS,
        )
        yield web, process


def is_ready(web: httpx.Client) -> bool:
    """Return whether the server accepts requests."""
    try:
        return web.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.long
def test_one_command_leads_to_a_chat_a_tool_and_an_end(
    program: Path, wheels: dict[str, Path], tmp_path: Path
) -> None:
    with running(program, tmp_path, "try") as (web, process):
        data = tmp_path / ".local" / "share" / "uamp-server"
        people = json.loads((data / "demo.json").read_text())["users"]
        assert f"sign in as alice  {people[0]['password']}" in (tmp_path / "output.txt").read_text()
        check_pages(web, people[0])
        check_modules(web, wheels[SERVER])
        with httpx.Client(base_url=web.base_url, timeout=30) as caller:
            check_answers(caller, people[0]["api_key"])
        process.send_signal(signal.SIGTERM)
        assert process.wait(END_SECONDS) == 0
    assert "Traceback" not in (tmp_path / "output.txt").read_text()


def check_pages(web: httpx.Client, person: dict[str, str]) -> None:
    """Sign in, and read the static files at their URLs with and without a digest."""
    page = web.get("/login")
    form = {
        "username": person["username"],
        "password": person["password"],
        "csrfmiddlewaretoken": web.cookies["csrftoken"],
    }
    signed_in = web.post("/login", data=form, headers={"Referer": str(page.url)})
    assert signed_in.status_code == 302, signed_in.text
    chats = web.get("/")
    addresses = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', chats.text))
    assert len(addresses) > 5
    for address in addresses:
        assert re.match(r"/static/[0-9a-f]{12}/", address), address
        file = web.get(address)
        assert file.status_code == 200, address
        assert "immutable" in file.headers["Cache-Control"]
    for address in ("/static/uamp/client.js", "/static/000000000000/uamp/client.js"):
        file = web.get(address)
        assert (file.status_code, file.headers["Cache-Control"]) == (200, "max-age=60, public")
    assert web.get("/static/absent.js").status_code == 404
    assert web.get("/static/../settings.py").status_code == 404


def check_modules(web: httpx.Client, wheel: Path) -> None:
    """Read every file of the bundle, and every module and style sheet of the wheel."""
    assets = "uamp_project/assets/"
    with ZipFile(wheel) as archive:
        digest = archive.read(f"{assets}static.digest").decode().strip()
        manifest = json.loads(archive.read(f"{assets}static/dist/manifest.json"))
        folder = f"{assets}static/"
        files = [name for name in archive.namelist() if name.startswith(folder)]
        names = [name.removeprefix(folder) for name in files if name.endswith((".js", ".css"))]
        assert {f"dist/{name}" for name in manifest["files"]} <= set(names)
        assert len(names) > 100
        for name in names:
            file = web.get(f"/static/{digest}/{name}")
            assert (file.status_code, name) == (200, name)
            assert "immutable" in file.headers["Cache-Control"]
            assert file.content == archive.read(f"{folder}{name}")


def check_answers(web: httpx.Client, key: str) -> None:
    """Call an agent, and have a worker run a tool."""
    web.headers["Authorization"] = f"Bearer {key}"
    version = web.get("/info").json()["version"]
    assert version == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert "hello there" in answer(web, agent="echo", text="hello there")
    files = {"file": ("sales.csv", CSV, "text/csv")}
    content = web.post("/api/v1/contents", files=files)
    assert content.status_code == 201, content.text
    text = answer(web, agent="report", text="Please", content=content.json()["content_id"])
    assert "2 rows and 2 columns" in text
    # The extra is not installed here.
    assert "draws no charts" in text


def answer(web: httpx.Client, *, agent: str, text: str, content: str = "") -> str:
    """Return the text of an answer."""
    question = {"agent": agent, "content": text, "attachments": [content] if content else []}
    started = web.post("/api/v1/responses", json=question)
    assert started.status_code in {200, 201, 202}, started.text
    (response,) = started.json()["responses"]
    address = f"/api/v1/responses/{response['id']}"
    deadline = time.monotonic() + START_SECONDS
    while (response := web.get(address).json())["status"] not in ENDED:
        assert time.monotonic() < deadline, response
        time.sleep(0.1)
    assert response["status"] == "completed", response
    return json.dumps(response)


@pytest.mark.long
def test_the_other_commands_run_installed(program: Path, tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603 as above
            [str(program), *arguments],
            cwd=tmp_path,
            env=variables(tmp_path, XDG_DATA_HOME=str(tmp_path / "data")),
            capture_output=True,
            text=True,
            check=False,
            timeout=PROGRAM_SECONDS,
        )

    early, migrated, account, checked = (
        run("serve"),
        run("migrate", "--verbosity=0"),
        run("user", "olga", "--admin"),
        run("check"),
    )
    assert early.returncode == 1
    assert "run `uamp-server migrate` first" in early.stderr
    assert migrated.returncode == 0, migrated.stderr
    assert (tmp_path / "data" / "uamp-server" / "db.sqlite3").is_file()
    assert account.stdout.startswith("olga can sign in with the password "), account.stderr
    assert checked.returncode == 0, checked.stderr
