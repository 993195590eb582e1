"""`manage.py serve`: one command starts and stops everything."""

import json
import os
import signal
import socket
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing
from io import StringIO
from pathlib import Path

import httpx
import psutil
import pytest
from pytest_django import Settings

from tests.uamp_project.serving import Serving, data_dir, manage, until
from uamp_project.celery import app
from uamp_project.management.commands.serve import Command

__all__ = ["data_dir"]


@pytest.fixture
def serving(data_dir: Path) -> Iterator[Serving]:
    started = Serving(data_dir)
    yield started
    started.process.end()


def beats(data_dir: Path) -> set[str]:
    """Return the signs of life: `server`, and the queues of workers."""
    with closing(sqlite3.connect(data_dir / "db.sqlite3", timeout=30)) as database:
        rows = database.execute("SELECT kind, queues FROM sessions_app_processbeat").fetchall()
    return {queue for kind, queues in rows for queue in (json.loads(queues) or [kind])}


@pytest.mark.parametrize(
    "signum", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)]
)
def test_it_greets_serves_and_takes_its_workers_along_when_it_ends(
    serving: Serving, data_dir: Path, signum: signal.Signals
) -> None:
    ready = httpx.get(f"http://127.0.0.1:{serving.port}/readyz")
    assert (ready.status_code, ready.json()) == (200, {"status": "ready"})
    greeting = serving.output.read_text()
    assert f"http://127.0.0.1:{serving.port}" in greeting
    assert "sign in as alice" in greeting
    assert "@assistant answers with the model m-1 at your cost, for signed-in people" in greeting
    assert "not visitors (UAMP_ANONYMOUS_MODELS)" in greeting
    assert "@echo" not in greeting

    workers = serving.wait_for_workers()
    until(lambda: beats(data_dir) == {"server", "tools", "webhooks"}, "all show that they live")
    serving.process.send_signal(signum)

    assert serving.process.wait(timeout=120) == 0
    assert not any(worker.is_running() for worker in workers)
    assert not beats(data_dir)
    assert not (data_dir / "run" / "layer.sock").exists()
    assert "Traceback" not in serving.output.read_text()


@pytest.mark.long
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

    assert serving.process.wait(timeout=120) == 0
    until(lambda: not renderer.is_running(), "the renderer ends")
    assert "Traceback" not in serving.output.read_text()


@pytest.mark.long
@pytest.mark.redis
def test_it_serves_with_redis_as_well(data_dir: Path, redis_url: str) -> None:
    serving = Serving(data_dir, REDIS_URL=redis_url, REDIS_PREFIX=f"test-{uuid.uuid4().hex}")
    try:
        ready = httpx.get(f"http://127.0.0.1:{serving.port}/readyz")
        assert (ready.status_code, ready.json()) == (200, {"status": "ready"})
        workers = serving.wait_for_workers()
    finally:
        serving.process.send_signal(signal.SIGTERM)

    assert serving.process.wait(timeout=120) == 0, serving.output.read_text()
    assert not any(worker.is_running() for worker in workers)


def test_the_workers_do_not_outlive_a_server_that_is_killed(serving: Serving) -> None:
    workers = serving.wait_for_workers()
    serving.process.end(signal.SIGKILL)

    until(lambda: not any(worker.is_running() for worker in workers), "the workers end")


def test_a_worker_that_dies_is_started_again(serving: Serving) -> None:
    first, other = serving.wait_for_workers()
    first.kill()
    until(
        lambda: (worker := serving.workers().get("tools")) is not None and worker.pid != first.pid,
        "another worker runs",
    )

    assert "the worker of tools ended with -9" in serving.output.read_text()
    assert serving.workers()["webhooks"].pid == other.pid


def test_each_task_has_the_queue_of_its_kind() -> None:
    """A worker without `-Q` takes all queues that there are."""
    app.loader.import_default_modules()
    own_tasks = [name for name in app.tasks if not name.startswith("celery.")]
    routed = {name: app.amqp.router.route({}, name)["queue"].name for name in own_tasks}

    assert routed == {
        "chat_app.digests.tasks.mail_unread": "webhooks",
        "chat_app.link_cards.tasks.read_link": "readings",
        "chat_app.push.tasks.send_push": "webhooks",
        "chat_app.transcripts.tasks.transcribe": "readings",
        "sessions_app.tools.tasks.run_tool_call": "tools",
        "sessions_app.webhooks.tasks.send_webhook": "webhooks",
    }
    assert set(app.amqp.queues) == {"tools", "webhooks", "readings"}


def test_a_second_server_on_the_same_data_is_refused(serving: Serving, data_dir: Path) -> None:
    done = manage("serve", "--port", "0", "--no-worker", data_dir=data_dir)

    assert done.returncode == 1
    assert "choose another DATA_DIR" in done.stderr
    assert httpx.get(f"http://127.0.0.1:{serving.port}/healthz").status_code == 200


@pytest.mark.long
def test_a_port_in_use_is_reported_and_nothing_is_left(data_dir: Path) -> None:
    with socket.socket() as listening_socket:
        listening_socket.bind(("127.0.0.1", 0))
        listening_socket.listen()
        port = listening_socket.getsockname()[1]
        done = manage("serve", "--port", str(port), data_dir=data_dir)

    assert done.returncode == 1
    assert f"cannot listen on 127.0.0.1 port {port}" in done.stderr
    assert not (data_dir / "run" / "layer.sock").exists()


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "command", [("serve", "--port", "0", "--no-worker"), ("demo", "--json"), ("audit_ledger",)]
)
def test_a_database_without_tables_is_refused(command: tuple[str, ...], tmp_path: Path) -> None:
    done = manage(*command, data_dir=tmp_path)

    assert (done.returncode, done.stdout) == (1, "")
    assert "run `manage.py migrate` first" in done.stderr
    assert f"the database {tmp_path / 'db.sqlite3'} " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
@pytest.mark.parametrize("command", ["serve", "demo", "audit_ledger"])
def test_each_command_says_what_it_does(command: str, tmp_path: Path) -> None:
    done = manage(command, "--help", data_dir=tmp_path, PORT="abc")

    assert done.returncode == 0
    assert done.stdout.count("\n\n") >= 2  # usage, what it does, options


@pytest.mark.parametrize(
    ("https", "address"),
    [(False, "http://localhost:8123"), (True, "https://chat.example.org")],
)
def test_the_setup_page_is_printed_with_the_address_that_answers(
    settings: Settings, tmp_path: Path, *, https: bool, address: str
) -> None:
    settings.HTTPS, settings.UAMP_ISSUER = https, "https://chat.example.org/"
    settings.DATA_DIR = tmp_path
    printed = StringIO()
    command = Command(stdout=printed)
    command._setup, command._notes = "/setup?token=t", []
    command._greet("0.0.0.0", 8123)  # noqa: S104 only printed
    assert f"create the first account: {address}/setup?token=t\n" in printed.getvalue()
