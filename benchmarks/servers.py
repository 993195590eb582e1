"""Servers to measure, each in its own process with a fresh DATA_DIR and database.

The server may be that of another commit (`earlier.tree`), whose code then comes from that folder;
the programs that seed and serve it are always the current ones.
"""

from __future__ import annotations

import atexit
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit, urlunsplit

import psycopg

from benchmarks.gauges import Backends

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT: Final = Path(__file__).resolve().parent.parent
START_SECONDS: Final = 240
STOP_SECONDS: Final = 20
LOCAL_POSTGRES: Final = "postgres://postgres@127.0.0.1:5432/postgres"
# A benchmark sends more requests as one person than the limits allow.
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
    "UAMP_MODEL_ALLOW_HOSTS": "127.0.0.1:*",
    "UAMP_REMOTE_ALLOW_HOSTS": "127.0.0.1:*",
    "UAMP_PEER_LOOPBACK_HTTP": "1",
    "LOG_LEVEL": "WARNING",
}
_numbers: Final = itertools.count(1)


@dataclass(frozen=True, kw_only=True)
class SeedPlan:
    """The rows of a database besides one person with a key, money and the scripted agents.

    `agents` are rows of agents, and `chats` are the lengths of chats in messages. `rows` is the
    number of messages of other people, which come with events, answers and sessions. `members` is
    the number of people in a shared chat, the room, with the agent `room_agent`, or of those who
    have yet to join it. With `room_size`, as many share a room each, where the agent answers when
    it is mentioned. `connected` are agents of daemons: a prefix of their names, the number of
    daemons, and the number of agents of each.
    """

    agents: Sequence[Mapping[str, Any]] = ()
    chats: Sequence[int] = ()
    rows: int = 0
    members: int = 0
    have_joined: bool = True
    room_agent: str = ""
    room_size: int = 0
    connected: Sequence[tuple[str, int, int]] = ()


@dataclass(frozen=True, kw_only=True)
class Data:
    """A prepared database, and the environment that points to it."""

    database: str
    environment: Mapping[str, str]
    folder: Path
    tree: Path
    token: str
    chats: Mapping[int, str]
    room: str
    rooms: Sequence[str]
    members: Sequence[str]
    connected: Mapping[str, Sequence[str]]
    backends: Backends | None


@dataclass(frozen=True, kw_only=True)
class Server:
    """A running server."""

    pid: int
    port: int


@dataclass(frozen=True, kw_only=True)
class ServerProgram:
    """A command that serves on the port appended to its arguments."""

    arguments: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    python: str = sys.executable
    folder: Path = ROOT


def postgres_url() -> str | None:
    """Return the URL of a PostgreSQL where databases can be created, or None."""
    url = os.environ.get("TEST_DATABASE_URL", LOCAL_POSTGRES)
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return None
    return url


@contextmanager
def prepared(
    database: str,
    plan: SeedPlan | None = None,
    settings: Mapping[str, str] | None = None,
    tree: Path = ROOT,
) -> Iterator[Data]:
    """Prepare a database, `sqlite` or `postgresql`, and delete it afterwards.

    `tree` is the folder of the code that creates it. Raises LookupError without a PostgreSQL.
    """
    with tempfile.TemporaryDirectory(prefix="uamp-bench-") as name:
        environment = {
            **os.environ,
            **NO_LIMITS,
            "DATABASE_URL": "",
            "REDIS_URL": "",
            **(settings or {}),
            "DJANGO_SETTINGS_MODULE": "uamp_project.settings",
            "DATA_DIR": name,
            "PYTHONPATH": str(tree),
        }
        if database == "sqlite":
            yield _seeded(database, environment, tree, plan or SeedPlan(), None)
            return
        with own_database() as url:
            environment["DATABASE_URL"] = url
            backends = Backends(url)
            try:
                yield _seeded(database, environment, tree, plan or SeedPlan(), backends)
            finally:
                backends.close()


@contextmanager
def own_database() -> Iterator[str]:
    """Create a database for this run, yield its URL and drop it; LookupError without a server."""
    url = postgres_url()
    if url is None:
        raise LookupError("no PostgreSQL: set TEST_DATABASE_URL")
    name = f"bench_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
        try:
            yield urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


def _seeded(
    database: str,
    environment: dict[str, str],
    tree: Path,
    plan: SeedPlan,
    backends: Backends | None,
) -> Data:
    folder = Path(environment["DATA_DIR"])
    if database == "sqlite":
        shutil.copytree(_migrated(tree), folder, dirs_exist_ok=True)
    else:
        _run(["manage.py", "migrate", "-v0"], environment, tree)
    seeding = ["-P", str(ROOT / "benchmarks/seed.py"), str(folder), json.dumps(asdict(plan))]
    _run(seeding, environment, tree)
    seed = json.loads((folder / "seed.json").read_text())
    return Data(
        database=database,
        environment=environment,
        folder=folder,
        tree=tree,
        token=seed["token"],
        chats={int(count): chat for count, chat in seed["chats"].items()},
        room=seed["room"],
        rooms=seed["rooms"],
        members=seed["members"],
        connected=seed["connected"],
        backends=backends,
    )


@cache
def _migrated(tree: Path) -> Path:
    """Return a DATA_DIR with an empty SQLite database, kept until this process exits."""
    folder = tempfile.mkdtemp(prefix="uamp-bench-empty-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    environment = {
        **os.environ,
        "DATABASE_URL": "",
        "REDIS_URL": "",
        "DJANGO_SETTINGS_MODULE": "uamp_project.settings",
        "DATA_DIR": folder,
        "PYTHONPATH": str(tree),
    }
    _run(["manage.py", "migrate", "-v0"], environment, tree)
    return Path(folder)


def _run(command: Sequence[str], environment: Mapping[str, str], tree: Path) -> None:
    subprocess.run([sys.executable, *command], cwd=tree, env=dict(environment), check=True)  # noqa: S603 our own interpreter


def of_ours(
    data: Data, kind: str = "uvicorn", settings: Mapping[str, str] | None = None
) -> ServerProgram:
    """Return our server on prepared data: `uvicorn`, or `daphne` (embedded, without its worker)."""
    return ServerProgram(
        arguments=(
            ["-P", str(ROOT / "benchmarks/serve.py"), "server"]
            if kind == "uvicorn"
            else ["manage.py", "serve", "--no-worker", "--port"]
        ),
        environment={**data.environment, **(settings or {})},
        folder=data.tree,
    )


def of_stub(name: str, settings: Mapping[str, str] | None = None) -> ServerProgram:
    """Return a program of `benchmarks.stubs`: `floor`, `broadcast`, `proxy` or `model`."""
    arguments = ["-m", "benchmarks.stubs.model"]
    if name != "model":
        arguments = ["-m", "benchmarks.serve", name]
    return ServerProgram(arguments=arguments, environment={**os.environ, **(settings or {})})


@contextmanager
def serving(program: ServerProgram, port: int | None = None) -> Iterator[Server]:
    """Run a server until the block ends; raises RuntimeError or TimeoutError if it cannot start."""
    port = port or free_port()
    process = subprocess.Popen(  # noqa: S603 our own interpreter
        [program.python, *program.arguments, str(port)],
        cwd=program.folder,
        env=dict(program.environment),
        stdout=subprocess.DEVNULL,
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


def free_port() -> int:
    """Return a port on which no program listens."""
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
