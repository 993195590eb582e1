"""`manage.py serve`: one command starts and stops everything."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx
import psutil
import pytest

from tests import services
from tests.journeys.product import Product

ROOT = Path(__file__).parent.parent.parent
START_SECONDS = 60


def environment(data_dir: Path) -> dict[str, str]:
    """Return an environment in which the product runs embedded on `data_dir`."""
    removed = {"DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE", "UAMP_LAYER_ROLE"}
    kept = {name: value for name, value in os.environ.items() if name not in removed}
    return {**kept, "DATA_DIR": str(data_dir)}


def manage(*arguments: str, data_dir: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(  # noqa: S603 our own interpreter
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**environment(data_dir), **variables},
        capture_output=True,
        text=True,
        timeout=60,
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

    def __init__(self, data_dir: Path, **settings: str) -> None:
        self.port = services.free_port()
        self.output = data_dir / f"serve-{self.port}.txt"
        with self.output.open("w") as output:
            self.process = subprocess.Popen(  # noqa: S603 our own interpreter
                [sys.executable, "manage.py", "serve", "--port", str(self.port)],
                cwd=ROOT,
                env={**environment(data_dir), **settings},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        until(self._answers, "the server answers")

    def _answers(self) -> bool:
        assert self.process.poll() is None, self.output.read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def worker(self) -> psutil.Process | None:
        """Return the worker, if one runs."""
        children = psutil.Process(self.process.pid).children()
        return next((child for child in children if is_worker(child)), None)

    def wait_for_worker(self) -> psutil.Process:
        """Return the worker as soon as it runs."""
        until(lambda: self.worker() is not None, "the worker runs")
        worker = self.worker()
        assert worker is not None
        return worker


def is_worker(process: psutil.Process) -> bool:
    try:
        return "uamp_project.embedded.worker" in process.cmdline()
    except psutil.NoSuchProcess:
        return False  # it has just ended


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition; fail when it does not come true."""
    deadline = time.monotonic() + START_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"not in time: {what}")
        time.sleep(0.05)


@pytest.fixture
def serving(data_dir: Path) -> Iterator[Serving]:
    started = Serving(data_dir)
    yield started
    if started.process.poll() is None:
        started.process.send_signal(signal.SIGTERM)
        started.process.wait(timeout=30)


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_it_greets_serves_and_takes_its_worker_along_when_it_ends(
    serving: Serving, data_dir: Path, signum: signal.Signals
) -> None:
    ready = httpx.get(f"http://127.0.0.1:{serving.port}/readyz")
    assert (ready.status_code, ready.json()) == (200, {"status": "ready"})
    greeting = serving.output.read_text()
    assert f"http://127.0.0.1:{serving.port}" in greeting
    assert "sign in as alice" in greeting
    assert (
        "@assistant answers with the model m-1 at your cost, for people who signed in" in greeting
    )
    assert "not visitors (UAMP_ANONYMOUS_MODELS)" in greeting
    assert "@echo" not in greeting

    worker = serving.wait_for_worker()
    serving.process.send_signal(signum)

    assert serving.process.wait(timeout=30) == 0
    assert not worker.is_running()
    assert not (data_dir / "run" / "layer.sock").exists()
    assert "Traceback" not in serving.output.read_text()


def test_ctrl_c_in_a_terminal_leaves_no_traceback_of_a_child(
    serving: Serving, data_dir: Path
) -> None:
    """The terminal sends SIGINT to all processes of its group."""
    people = json.loads((data_dir / "demo.json").read_text())["users"]
    httpx.post(
        f"http://127.0.0.1:{serving.port}/api/v1/render",
        json={"text": "*words*"},
        headers={"Authorization": f"Bearer {people[0]['api_key']}"},
    ).raise_for_status()
    renderer = next(
        child
        for child in psutil.Process(serving.process.pid).children()
        if "chat_app.markdown" in child.cmdline()
    )
    os.killpg(serving.process.pid, signal.SIGINT)

    assert serving.process.wait(timeout=30) == 0
    until(lambda: not renderer.is_running(), "the renderer ends")
    assert "Traceback" not in serving.output.read_text()


@pytest.mark.redis
def test_it_serves_with_redis_as_well(data_dir: Path, redis_url: str) -> None:
    serving = Serving(data_dir, REDIS_URL=redis_url, REDIS_PREFIX=f"test-{uuid.uuid4().hex}")
    try:
        ready = httpx.get(f"http://127.0.0.1:{serving.port}/readyz")
        assert (ready.status_code, ready.json()) == (200, {"status": "ready"})
        worker = serving.wait_for_worker()
    finally:
        serving.process.send_signal(signal.SIGTERM)

    assert serving.process.wait(timeout=30) == 0, serving.output.read_text()
    assert not worker.is_running()


def test_the_worker_does_not_outlive_a_server_that_is_killed(serving: Serving) -> None:
    worker = serving.wait_for_worker()
    serving.process.kill()
    serving.process.wait()

    until(lambda: not worker.is_running(), "the worker ends")


def test_a_worker_that_dies_is_started_again(serving: Serving) -> None:
    first = serving.wait_for_worker()
    first.kill()
    until(
        lambda: (worker := serving.worker()) is not None and worker.pid != first.pid,
        "another worker runs",
    )

    assert "the worker ended with -9" in serving.output.read_text()


def test_a_second_server_on_the_same_data_is_refused(serving: Serving, data_dir: Path) -> None:
    done = manage("serve", "--port", "0", "--no-worker", data_dir=data_dir)

    assert done.returncode == 1
    assert "choose another DATA_DIR" in done.stderr
    assert httpx.get(f"http://127.0.0.1:{serving.port}/healthz").status_code == 200


def test_a_port_that_is_taken_is_said_and_nothing_is_left(data_dir: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = manage("serve", "--port", str(port), data_dir=data_dir)

    assert done.returncode == 1
    assert f"cannot listen on 127.0.0.1 port {port}" in done.stderr
    assert not (data_dir / "run" / "layer.sock").exists()


@pytest.mark.parametrize(
    "command", [("serve", "--port", "0", "--no-worker"), ("demo", "--json"), ("audit_ledger",)]
)
def test_a_database_without_tables_is_refused(command: tuple[str, ...], tmp_path: Path) -> None:
    done = manage(*command, data_dir=tmp_path)

    assert (done.returncode, done.stdout) == (1, "")
    assert "run `manage.py migrate` first" in done.stderr
    assert f"the database {tmp_path / 'db.sqlite3'} " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["serve", "demo", "audit_ledger"])
def test_each_command_says_what_it_does(command: str, tmp_path: Path) -> None:
    done = manage(command, "--help", data_dir=tmp_path, PORT="abc")

    assert done.returncode == 0
    assert done.stdout.count("\n\n") >= 2  # usage, what it does, options
