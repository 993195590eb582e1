"""The servers of the kill matrix: real processes that are killed without notice and restarted.

`sqlite` is the embedded form: one server with its supervised worker. `postgres` is two servers and
two workers on PostgreSQL and Redis. Both have leases that end within two seconds.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx
import psycopg

from tests import processes, services
from tests.faults.kill_money import MONEY, PRICES
from tests.faults.kill_script import JOURNAL, TOOLS_OF
from tests.programs import PROGRAM_SECONDS, Program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

ROOT: Final = Path(__file__).resolve().parents[2]
START_SECONDS: Final = 60
STOP_SECONDS: Final = 30
LIMITS: Final = {
    "UAMP_LEASE_SECONDS": "1.5",
    "UAMP_SWEEP_SECONDS": "0.3",
    "UAMP_FLUSH_MS": "50",
    "UAMP_GRACE_SECONDS": "1",
    "UAMP_RESPONSES_PER_MINUTE": "1000000",
    "UAMP_SESSIONS_PER_MINUTE": "1000000",
    "UAMP_HTTP_EVENTS_PER_MINUTE": "1000000",
    "UAMP_REQUESTS_PER_MINUTE": "1000000",
    "UAMP_READS_PER_MINUTE": "1000000",
    "UAMP_WRITES_PER_MINUTE": "1000000",
    "UAMP_EVENTS_PER_MINUTE": "1000000",
    "UAMP_CONNECTIONS_PER_USER": "1000",
    "LOG_LEVEL": "WARNING",
}
PREPARE = f"""
import django
django.setup()
from django.core.management import call_command
from django.contrib.auth.models import User
from agents_app.models import Agent
from payments_app import services as ledger
from payments_app.spending import approvals
from payments_app.money import Money
from sessions_app.access import auth
call_command("migrate", verbosity=0)
ada = User.objects.create_user("ada")
ledger.top_up(key="ada", account=ledger.account_of_user(ada.pk).id, amount=Money.parse({MONEY!r}),
    provider="tests", external_id="ada")
for name, tools in {TOOLS_OF!r}.items():
    agent = Agent.objects.create(name=name, is_public=True, options={{"script": "speak"}},
        tools=list(tools), pricing={PRICES!r})
    approvals.approve(ada.pk, agent.pk, Money.parse("1"))
print(auth.create_api_key(ada, name="kill matrix"))
"""


class NoServices(LookupError):
    """A service that the servers need is missing."""


class ServerGroup:
    """A running product of several processes, on a database of its own."""

    def __init__(self, folder: Path, environment: dict[str, str], *, servers: int) -> None:
        self.folder = folder
        self.journals = folder / "journals"
        self.journals.mkdir()
        self.ports = [services.free_port() for _ in range(servers)]
        self.token = ""
        self._environment = environment
        self._embedded = not environment["DATABASE_URL"]
        self._processes: dict[str, Program] = {}
        self._starting = threading.Lock()

    # --- Life ---

    def prepare(self) -> None:
        """Migrate, and make the agents and a person with a key."""
        self.token = self.run(PREPARE).split()[-1]

    def run(self, program: str) -> str:
        """Run a program of Python on the database of the servers; return what it prints."""
        done = subprocess.run(  # noqa: S603 our own interpreter
            [sys.executable, "-c", program],
            cwd=ROOT,
            env=self._all_environment(),
            stdout=subprocess.PIPE,
            check=True,
            timeout=PROGRAM_SECONDS,
        )
        return done.stdout.decode()

    def start(self) -> None:
        """Start everything and wait until it is ready."""
        for number in range(len(self.ports)):
            self._start_server(number)
        for number in range(0 if self._embedded else 2):
            self._start_worker(number)
        for number in range(len(self.ports)):
            self.wait_for_server(number)
        self._wait_for_workers()

    def stop(self) -> None:
        """End everything in order."""
        for process in self._processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self._processes.values():
            process.end(seconds=STOP_SECONDS)

    def _all_environment(self) -> dict[str, str]:
        inherited = {
            name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ
        }
        return {**inherited, **LIMITS, **self._environment, "PYTHONPATH": str(ROOT)}

    def _spawn(self, name: str, command: list[str]) -> None:
        self._processes[name] = Program(
            *(sys.executable, *command),
            log=self.folder / f"{name}.log",
            cwd=ROOT,
            env=self._all_environment(),
        )

    def _start_server(self, number: int) -> None:
        port = str(self.ports[number])
        uvicorn = [*services.UVICORN]
        self._spawn(
            f"server{number}",
            ["manage.py", "serve", "--port", port]
            if self._embedded
            else [*uvicorn, "--log-level", "warning", "--port", port],
        )

    def _start_worker(self, number: int) -> None:
        celery = ["-m", "celery", "-A", "uamp_project", "worker", "-P", "threads", "-c2"]
        self._spawn(f"worker{number}", [*celery, "-n", f"worker{number}@%h"])

    def wait_for_server(self, number: int) -> None:
        """Wait until a server takes turns."""
        services.wait_until_ready(f"http://127.0.0.1:{self.ports[number]}")

    def _wait_for_workers(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while len(self.worker_pids()) < (1 if self._embedded else 2):
            if time.monotonic() > deadline:
                raise TimeoutError("the workers did not start")
            time.sleep(0.05)

    # --- Kills ---

    def kill_server(self, number: int) -> None:
        """End a server at once."""
        self._processes[f"server{number}"].end(signal.SIGKILL)

    def restart_server(self, number: int) -> None:
        """Start a killed server again and wait for it."""
        self._start_server(number)
        self.wait_for_server(number)

    def worker_pids(self) -> list[int]:
        """Return the workers that run now."""
        if not self._embedded:
            return [
                process.pid
                for name, process in self._processes.items()
                if name.startswith("worker") and process.poll() is None
            ]
        parent = self._processes["server0"].pid
        return [pid for pid in processes.children(parent) if _is_worker(pid)]

    def worker_of(self, pid: int) -> int | None:
        """Return the worker under which a process runs, however deep; None when it is gone."""
        workers = self.worker_pids()
        while pid not in workers:
            try:
                stat = Path(f"/proc/{pid}/stat").read_text()
            except FileNotFoundError:
                return None
            # The name may hold blanks and brackets; the parent is the second field after it.
            pid = int(stat.rpartition(")")[2].split()[1])
        return pid

    def kill_worker(self, pid: int) -> None:
        """End a worker at once and have it started again; the embedded one's parent does that."""
        if self._embedded:
            os.kill(pid, signal.SIGKILL)
            return
        for name, process in self._processes.items():
            if process.pid == pid:
                process.end(signal.SIGKILL)
                self._start_worker(int(name.removeprefix("worker")))
                return
        raise LookupError(f"no worker {pid}")

    # --- What is known of it ---

    def journal(self, tag: str) -> list[list[str]]:
        """Return the effects of a turn's tools: tool, call, attempt and process of each."""
        path = self.journals / tag
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def rows(self, table: str, columns: str) -> list[dict[str, Any]]:
        """Return the rows of a table; JSON is decoded."""
        statement = f"SELECT {columns} FROM {table}"  # noqa: S608 two words of our own
        if self._embedded:
            with sqlite3.connect(self.folder / "db.sqlite3", timeout=20) as database:
                rows: list[Any] = database.execute(statement).fetchall()
            database.close()
        else:
            with psycopg.connect(self._environment["DATABASE_URL"]) as connection:
                rows = connection.execute(statement.encode()).fetchall()
        names = [name.strip() for name in columns.split(",")]
        return [dict(zip(names, map(_plain, row), strict=True)) for row in rows]

    @contextmanager
    def locked(self, table: str) -> Iterator[None]:
        """Hold a lock on a table of PostgreSQL, so that its readers wait."""
        with psycopg.connect(self._environment["DATABASE_URL"]) as connection:
            connection.execute(f'LOCK TABLE "{table}" IN ACCESS EXCLUSIVE MODE'.encode())
            yield
            connection.rollback()

    def is_waiting_for(self, table: str) -> bool:
        """Return whether a program waits for the lock on a table of PostgreSQL."""
        statement = "SELECT count(*) FROM pg_locks WHERE relation = %s::regclass AND NOT granted"
        with psycopg.connect(self._environment["DATABASE_URL"]) as connection:
            row = connection.execute(statement.encode(), [table]).fetchone()
        return row is not None and bool(row[0])

    def get(self, path: str) -> Any:
        """Return the reply of REST, from any server that answers."""
        with httpx.Client(
            base_url=f"http://127.0.0.1:{self.ports[-1]}",
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=20,
            trust_env=False,
        ) as client:
            return client.get(path).raise_for_status().json()


def _is_worker(pid: int) -> bool:
    """Return whether a process is an embedded worker; what has just ended is none."""
    try:
        return b"uamp_project.embedded.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return False


def _plain(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) and value.startswith(("[", "{")) else value


@contextmanager
def running_servers(
    database: str,
    settings: Mapping[str, str] | None = None,
    *,
    copy_migrated: Callable[[Path], None] | None = None,
) -> Iterator[ServerGroup]:
    """Run a group, `sqlite` or `postgres`; raises NoServices.

    `copy_migrated` copies a migrated SQLite database to the group's folder, which saves migrating.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="uamp-kill-")))
        environment = {
            "DJANGO_SETTINGS_MODULE": "tests.faults.kill_settings",
            "DATA_DIR": str(folder),
            JOURNAL: str(folder / "journals"),
            "SECRET_KEY": uuid.uuid4().hex * 2,
            "DATABASE_URL": "",
            **(settings or {}),
        }
        if database == "postgres":
            environment.update(stack.enter_context(_services()))
        elif copy_migrated is not None:
            copy_migrated(folder)
        group = ServerGroup(folder, environment, servers=1 if database == "sqlite" else 2)
        group.prepare()
        stack.callback(group.stop)
        group.start()
        yield group


@contextmanager
def _services() -> Iterator[dict[str, str]]:
    address = services.postgres()
    redis = services.running_redis()
    if address is None or redis is None:
        raise NoServices("PostgreSQL and Redis are needed; see tests/services.py")
    name = f"kill_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
    try:
        yield {
            "DATABASE_URL": f"{address.rsplit('/', 1)[0]}/{name}",
            "REDIS_URL": redis,
            "REDIS_PREFIX": name,
        }
    finally:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())
