"""`manage.py` in processes of its own: commands, and a running `manage.py serve`."""

import os
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from tests import services
from tests.journeys.product import Product
from tests.programs import PROGRAM_SECONDS, START_SECONDS, Program

ROOT = Path(__file__).parent.parent.parent


def environment(data_dir: Path) -> dict[str, str]:
    """Return an environment in which the product runs embedded on `data_dir`."""
    removed = {"DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE", "UAMP_LAYER_ROLE"}
    variables = {name: value for name, value in os.environ.items() if name not in removed}
    return {**variables, "DATA_DIR": str(data_dir)}


def manage(*arguments: str, data_dir: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(  # noqa: S603 our own interpreter
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**environment(data_dir), **variables},
        capture_output=True,
        text=True,
        timeout=PROGRAM_SECONDS,
        check=False,
    )


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a DATA_DIR with a migrated database and a demo."""
    path = tmp_path_factory.mktemp("serve")
    Product(path, 0).prepare()
    # As after a start with OPENAI_API_KEY, whose service nothing here asks.
    with closing(sqlite3.connect(path / "db.sqlite3")) as database, database:
        database.execute(
            "UPDATE agents_app_agent SET provider = 'openai_compat', model = 'm-1',"
            " options = '{}' WHERE name = 'assistant'"
        )
    return path


class Serving:
    """A running `manage.py serve`."""

    def __init__(self, data_dir: Path, *, port: int | None = None, **settings: str) -> None:
        self.port = port or services.free_port()
        self.output = data_dir / f"serve-{self.port}.txt"
        self.process = Program(
            *(sys.executable, "manage.py", "serve", "--port", str(self.port)),
            log=self.output,
            cwd=ROOT,
            env={**environment(data_dir), **settings},
            start_new_session=True,
        )
        self.process.wait_until(self._answers, "the server answers")

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def workers(self) -> dict[str, psutil.Process]:
        """Return the workers that run, by the queue that each takes."""
        children = psutil.Process(self.process.pid).children()
        return {queue: child for child in children if (queue := queue_of(child))}

    def wait_for_workers(self) -> list[psutil.Process]:
        """Return the workers as soon as both run: that of tools, and that of webhooks."""
        until(lambda: set(self.workers()) == {"tools", "webhooks"}, "the workers run")
        workers = self.workers()
        return [workers["tools"], workers["webhooks"]]


def queue_of(process: psutil.Process) -> str:
    """Return the queue that a worker takes; '' for another process."""
    try:
        _, separator, queue = " ".join(process.cmdline()).partition("uamp_project.embedded.worker ")
    except psutil.NoSuchProcess:
        return ""  # it has just ended
    return queue.split()[0] if separator else ""


def until(condition: Callable[[], bool], what: str, *, seconds: float = START_SECONDS) -> None:
    """Wait for a condition; fail when it does not come true."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"not in time: {what}")
        time.sleep(0.05)
