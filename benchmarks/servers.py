"""Servers to measure: each a process of its own, on a fresh DATA_DIR and a fresh database."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit, urlunsplit

import psycopg

from benchmarks.gauges import Backends

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT: Final = Path(__file__).resolve().parent.parent
START_SECONDS: Final = 30
STOP_SECONDS: Final = 20
LOCAL_POSTGRES: Final = "postgres://postgres@127.0.0.1:5432/postgres"
# A benchmark asks more of one person than a person may.
NO_LIMITS: Final = {
    "UAMP_CONNECTIONS_PER_USER": "1000000",
    "UAMP_EVENTS_PER_MINUTE": "1000000000",
    "UAMP_EVENTS_BURST": "1000000000",
    "UAMP_RESPONSES_PER_MINUTE": "1000000000",
    "UAMP_SESSIONS_PER_MINUTE": "1000000000",
    "UAMP_HTTP_EVENTS_PER_MINUTE": "1000000000",
    "UAMP_REQUESTS_PER_MINUTE": "1000000000",
    "UAMP_READS_PER_MINUTE": "1000000000",
    "UAMP_WRITES_PER_MINUTE": "1000000000",
    "UAMP_RUNS_PER_PROCESS": "1000000",
    "UAMP_RESPONSES_PER_PERSON": "1000000",
    "LOG_LEVEL": "WARNING",
}


@dataclass(frozen=True, kw_only=True)
class Data:
    """A prepared database, and the environment that names it."""

    environment: Mapping[str, str]
    folder: Path
    token: str
    chats: Mapping[int, str]
    backends: Backends | None


@dataclass(frozen=True, kw_only=True)
class Server:
    """A running server."""

    pid: int
    port: int


def postgres_url() -> str | None:
    """Return the address of a PostgreSQL on which a database may be made, or None."""
    url = os.environ.get("TEST_DATABASE_URL", LOCAL_POSTGRES)
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return None
    return url


@contextmanager
def data(database: str, long_chat: int, settings: Mapping[str, str]) -> Iterator[Data]:
    """Prepare a database, `sqlite` or `postgresql`, and take it away afterwards."""
    with tempfile.TemporaryDirectory(prefix="uamp-bench-") as name:
        folder = Path(name)
        environment = {
            **os.environ,
            **NO_LIMITS,
            **settings,
            "DJANGO_SETTINGS_MODULE": "uamp_project.settings",
            "DATA_DIR": name,
            "DATABASE_URL": "",
            "REDIS_URL": "",
        }
        if database == "sqlite":
            yield _prepared(environment, folder, long_chat, None)
            return
        with own_database() as url:
            environment["DATABASE_URL"] = url
            backends = Backends(url)
            try:
                yield _prepared(environment, folder, long_chat, backends)
            finally:
                backends.close()


@contextmanager
def own_database() -> Iterator[str]:
    """Make a database of this run, yield its address and drop it; LookupError without a server."""
    url = postgres_url()
    if url is None:
        raise LookupError("no PostgreSQL: set TEST_DATABASE_URL")
    name = f"bench_{os.getpid()}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
        try:
            yield urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


def _prepared(
    environment: dict[str, str], folder: Path, long_chat: int, backends: Backends | None
) -> Data:
    for command in (
        ["manage.py", "migrate", "-v0"],
        ["-m", "benchmarks.seed", str(folder), str(long_chat)],
    ):
        subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, check=True)  # noqa: S603 our own interpreter
    seed = json.loads((folder / "seed.json").read_text())
    return Data(
        environment=environment,
        folder=folder,
        token=seed["token"],
        chats={int(count): chat for count, chat in seed["chats"].items()},
        backends=backends,
    )


@contextmanager
def serving(kind: str, environment: Mapping[str, str]) -> Iterator[Server]:
    """Run a server: `uvicorn`, `daphne` (the embedded one, without its worker) or `floor`."""
    port = _free_port()
    command = {
        "uvicorn": ["-m", "benchmarks.serve", "server", str(port)],
        "floor": ["-m", "benchmarks.serve", "floor", str(port)],
        "daphne": ["manage.py", "serve", "--no-worker", "--port", str(port)],
    }[kind]
    process = subprocess.Popen(  # noqa: S603 our own interpreter
        [sys.executable, *command], cwd=ROOT, env=dict(environment), stdout=subprocess.DEVNULL
    )
    try:
        _wait_for(port, process)
        yield Server(pid=process.pid, port=port)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError("the server did not start")
