"""Server processes that tests kill."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from websockets.exceptions import ConnectionClosed

from tests import databases, run_folder, services
from tests.client import Frame, UampClient
from tests.programs import PROGRAM_SECONDS, Program

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[3]

PREPARE = """
import django
django.setup()
from django.core.management import call_command
from agents_app.demo import prepare_agents
from agents_app.models import Agent
call_command("migrate", verbosity=0)
prepare_agents()
Agent.objects.create(
    name="teller", is_public=True, options={"script": "echo", "delay": 0.05}
)
Agent.objects.create(name="noter", is_public=True, tools=["note"])
Agent.objects.create(name="asks-twice", is_public=True)
"""


def environment(data_dir: Path) -> dict[str, str]:
    """Return the environment of a server on a data directory."""
    inherited = {
        name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG"}
    }
    return {
        **inherited,
        "DATA_DIR": str(data_dir),
        "DJANGO_SETTINGS_MODULE": "uamp_project.settings",
        "UAMP_LEASE_SECONDS": "1",
        "UAMP_SWEEP_SECONDS": "0.2",
        "UAMP_FLUSH_MS": "50",
        "UAMP_GRACE_SECONDS": "2",
        "PYTHONPATH": str(ROOT),
    }


@dataclass
class Server:
    """A server process that can be ended and started again on the same data."""

    data_dir: Path
    settings: str = "uamp_project.settings"
    port: int = field(default_factory=services.free_port)
    process: Program | None = None
    environment: dict[str, str] = field(default_factory=dict)

    def start(self, *, uvicorn: bool = False) -> None:
        """Start it and wait until it answers."""
        command = (
            [*services.UVICORN, "--port"]
            if uvicorn
            else ["manage.py", "serve", "--no-worker", "--port"]
        )
        self.process = Program(
            *(sys.executable, *command, str(self.port)),
            cwd=ROOT,
            env={
                **environment(self.data_dir),
                "DJANGO_SETTINGS_MODULE": self.settings,
                **self.environment,
            },
            stderr=subprocess.DEVNULL,
        )
        services.wait_until_ready(f"http://127.0.0.1:{self.port}", self.process)

    def end(self, how: signal.Signals) -> int:
        """Send a signal, wait for the end and return the exit status."""
        assert self.process is not None
        return self.process.end(how)

    def dial(self) -> UampClient:
        """Return a socket of a visitor."""
        return UampClient(f"ws://127.0.0.1:{self.port}/uamp")

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        database = sqlite3.connect(self.data_dir / "db.sqlite3")
        try:
            return database.execute(sql).fetchall()
        finally:
            database.close()

    def run(self, code: str) -> None:
        """Run code on its database, while it may run or not."""
        variables = {**environment(self.data_dir), "DJANGO_SETTINGS_MODULE": self.settings}
        prepared_code = f"import django\ndjango.setup()\n{code}"
        subprocess.run(  # noqa: S603 our own code
            [sys.executable, "-c", prepared_code],
            cwd=ROOT,
            env=variables,
            check=True,
            timeout=PROGRAM_SECONDS,
        )

    def execute(self, sql: str) -> None:
        """Change the database while no server runs."""
        database = sqlite3.connect(self.data_dir / "db.sqlite3")
        try:
            database.execute(sql)
            database.commit()
        finally:
            database.close()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a data directory with a migrated database and agents."""
    folder = tmp_path_factory.mktemp("prepared")
    run_folder.copy_of("killable", make_agents, folder)
    return folder


def make_agents(folder: Path) -> None:
    databases.copy_migrated(folder)
    subprocess.run(  # noqa: S603 our own code
        [sys.executable, "-c", PREPARE],
        cwd=ROOT,
        env=environment(folder),
        check=True,
        timeout=PROGRAM_SECONDS,
    )


@pytest.fixture
def killable(prepared: Path, tmp_path: Path) -> Iterator[Server]:
    """Give a server that was not started."""
    shutil.copytree(prepared, tmp_path / "data")
    server = Server(tmp_path / "data")
    yield server
    if server.process is not None:
        server.end(signal.SIGKILL)


def resumed(client: UampClient, created: Frame, after: int) -> None:
    """Go on with a session."""
    resume = {"session_id": created["session_id"], "epoch": created["epoch"], "after": after}
    client.send("session.create", session={}, resume=resume)
    assert client.expect("session.created")["resumed"] is True
    client.expect("capabilities")


def read_to_the_end(client: UampClient) -> tuple[list[Frame], int]:
    """Return the frames until the server closes, and its close code."""
    frames: list[Frame] = []
    while True:
        try:
            frames.append(client.receive())
        except ConnectionClosed as closed:
            return frames, closed.rcvd.code if closed.rcvd else 1006
