"""The commands that start a server and make accounts."""

from __future__ import annotations

import ast
import fcntl
import io
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tomllib
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

import httpx
import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command, get_commands
from django.db import OperationalError, connection

from audit_app.models import AuditRecord
from sessions_app.models import ApiKey
from tests import services
from tests.deploy.test_upgrade import database
from tests.programs import START_SECONDS, Program
from tests.uamp_project.serving import (
    ROOT,
    data_dir,
    environment,
    manage,
    until,
)
from uamp_project import command
from uamp_project.management.migrated import require_migrations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django import Settings

__all__ = ["data_dir"]

PASSWORD: Final = "correct horse battery"


def user(*arguments: str, password: str = "", monkeypatch: pytest.MonkeyPatch) -> str:
    """Run `manage.py user`; return what it prints."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{password}\n"))
    output = io.StringIO()
    call_command("user", *arguments, stdout=output)
    return output.getvalue()


# --- user ---


@pytest.mark.django_db
def test_user_makes_an_account_and_prints_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = user("erin", "--email", "erin@example.org", monkeypatch=monkeypatch)

    erin = User.objects.get(username="erin")
    assert (erin.email, erin.is_staff, erin.is_superuser) == ("erin@example.org", False, False)
    assert erin.check_password(printed.split()[-1])
    assert AuditRecord.objects.filter(action="person.made", object_id=str(erin.pk)).exists()


@pytest.mark.django_db
def test_user_reads_a_password_and_makes_an_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = user(
        "olga", "--admin", "--password-stdin", password=PASSWORD, monkeypatch=monkeypatch
    )

    olga = User.objects.get(username="olga")
    assert (olga.is_staff, olga.is_superuser) == (True, True)
    assert olga.check_password(PASSWORD)
    assert PASSWORD not in printed


@pytest.mark.django_db
def test_a_new_password_revokes_the_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    user("erin", monkeypatch=monkeypatch)
    erin = User.objects.get(username="erin")
    prefix, sha256 = ApiKey.split_secret(ApiKey.make_secret())
    key = ApiKey.objects.create(user=erin, prefix=prefix, sha256=sha256, name="old")

    printed = user("erin", "--new-password", monkeypatch=monkeypatch)

    erin.refresh_from_db()
    key.refresh_from_db()
    assert erin.check_password(printed.split()[-1])
    assert key.revoked_at is not None


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("arguments", "password", "error"),
    [
        (["taken"], "", "taken already has an account"),
        (["absent", "--new-password"], "", "There is no account named absent."),
        (["erin", "--password-stdin"], "short", "too short"),
        (["erin", "--password-stdin"], "password1", "too common"),
        (["two words"], "", "valid username"),
        (["erin", "--email", "nowhere"], "", "valid email"),
    ],
)
def test_user_refuses_what_cannot_be_an_account(
    arguments: list[str], password: str, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = User.objects.create_user("taken", password=PASSWORD)
    with pytest.raises(CommandError, match=error):
        user(*arguments, password=password, monkeypatch=monkeypatch)

    assert list(User.objects.values_list("username", flat=True)) == ["taken"]
    account.refresh_from_db()
    assert account.check_password(PASSWORD)


# --- up ---


@pytest.mark.sampled(1)
@pytest.mark.any_database
@pytest.mark.parametrize("name", ["up", "web"])
def test_a_taken_port_is_refused_before_anything_is_prepared(name: str, tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = manage(name, "--port", str(port), data_dir=tmp_path)

    assert done.returncode == 1
    assert f"cannot listen on 127.0.0.1 port {port}: Address already in use" in done.stderr
    assert "for example PORT=" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "db.sqlite3").exists()


@pytest.mark.any_database
def test_up_names_each_step_before_it_takes_it(data_dir: Path, tmp_path: Path) -> None:
    with Program(
        *(sys.executable, "manage.py", "up", "--demo", "--no-worker", "--port", "0"),
        log=tmp_path / "log.txt",
        cwd=ROOT,
        env=environment(data_dir),
    ) as server:
        until(lambda: "Press Ctrl-C to stop." in server.output, "it serves", seconds=60)
        first_lines = server.output.partition("UAMP server")[0]
    steps = re.findall(r"^.* \.\.\.$", first_lines, re.MULTILINE)
    assert steps == ["Preparing the demo ...", "Starting the server ..."]
    # Such as one for each top-up of the demo.
    assert " INFO " not in first_lines


@pytest.mark.any_database
@pytest.mark.long
@pytest.mark.timeout(600)
def test_two_that_start_at_once_migrate_once_and_one_serves(tmp_path: Path) -> None:
    """Without REDIS_URL one process serves a DATA_DIR: the other says so in a line."""
    ports = [services.free_port(), services.free_port()]
    started = [
        Program(
            *(sys.executable, "manage.py", "up", "--no-worker", "--port", str(port)),
            log=tmp_path / f"{port}.txt",
            cwd=ROOT,
            env=environment(tmp_path / "data"),
        )
        for port in ports
    ]
    try:
        # One of them creates all tables, while the other waits for it.
        until(lambda: any(_is_ready(port) for port in ports), "one serves", seconds=240)
        until(lambda: any(program.poll() is not None for program in started), "the other ends")
        outputs = [program.output for program in started]
        assert [program.poll() for program in started].count(1) == 1, outputs
        assert sum("Preparing the database" in output for output in outputs) == 1, outputs
        assert not any("Traceback" in output for output in outputs), outputs
        assert any("choose another DATA_DIR" in output for output in outputs), outputs
        assert any("/setup?token=" in output for output in outputs), outputs
    finally:
        for program in started:
            program.end()


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.any_database
@pytest.mark.parametrize("vendor", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_two_that_migrate_at_once_both_end_well(vendor: str, tmp_path: Path) -> None:
    """On PostgreSQL each has its own DATA_DIR, as on two machines."""
    with database(vendor) as variables:
        started = [
            Program(
                *(sys.executable, "manage.py", "migrate", "-v", "0"),
                log=tmp_path / f"{number}.txt",
                cwd=ROOT,
                env={**environment(tmp_path / (str(number) if variables else "data")), **variables},
            )
            for number in range(2)
        ]
        try:
            until(lambda: all(p.poll() is not None for p in started), "both end", seconds=400)
        finally:
            for program in started:
                program.end()
    outputs = [program.output for program in started]
    assert [program.poll() for program in started] == [0, 0], outputs
    assert sum("Waiting for another migration" in output for output in outputs) == 1, outputs


@pytest.mark.any_database
def test_a_process_that_waits_to_migrate_does_not_open_the_database(tmp_path: Path) -> None:
    """Two that open a new file at once may find it locked."""
    folder = tmp_path / "data"
    folder.mkdir()
    with (folder / "migrate.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        command = (sys.executable, "manage.py", "migrate", "-v", "0")
        program = Program(*command, log=tmp_path / "log", cwd=ROOT, env=environment(folder))
        try:
            until(lambda: "Waiting for another" in program.output, "it waits")
            assert not (folder / "db.sqlite3").exists()
        finally:
            program.end()


@pytest.mark.long
@pytest.mark.any_database
def test_a_database_of_a_newer_version_is_refused(data_dir: Path) -> None:
    with closing(sqlite3.connect(data_dir / "db.sqlite3")) as rows, rows:
        rows.execute(
            "INSERT INTO django_migrations (app, name, applied)"
            " VALUES ('chat_app', '9999_future', '2030-01-01')"
        )
    try:
        for arguments in (("up", "--port", "0"), ("migrate",), ("check", "--database", "default")):
            done = manage(*arguments, data_dir=data_dir)
            assert done.returncode == 1
            assert "was migrated by a newer version of the server (chat_app.9999_f" in done.stderr
            assert "Traceback" not in done.stderr
        # During an upgrade, processes of the release before may restart.
        assert manage("demo", "--quiet", data_dir=data_dir).returncode == 0
    finally:
        with closing(sqlite3.connect(data_dir / "db.sqlite3")) as rows, rows:
            rows.execute("DELETE FROM django_migrations WHERE name = '9999_future'")


@pytest.mark.long
@pytest.mark.any_database
def test_a_database_that_cannot_be_reached_is_a_line(tmp_path: Path) -> None:
    address = f"postgres://uamp:secret@127.0.0.1:{services.free_port()}/uamp"
    for name in ("migrate", "up", "web"):
        done = manage(name, data_dir=tmp_path, DATABASE_URL=address, PORT="0")
        assert done.returncode == 1
        assert re.search(r"the database uamp at 127.0.0.1:\d+ does not answer: ", done.stderr)
        assert "Traceback" not in done.stderr
        assert "secret" not in done.stderr


def _is_ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


# --- worker ---


@pytest.mark.long
@pytest.mark.any_database
def test_worker_runs_named_queues_until_it_is_terminated(data_dir: Path) -> None:
    with Program(
        *(sys.executable, "manage.py", "worker", "tools", "webhooks", "--threads", "2"),
        cwd=ROOT,
        env=environment(data_dir),
        stdout=subprocess.PIPE,
    ) as worker:
        assert worker.stdout is not None
        with worker.limited_reads(START_SECONDS):
            line = worker.stdout.readline()
        assert line == "Working on tools, webhooks. Press Ctrl-C to stop.\n"
        assert worker.end(signal.SIGTERM) == 0


# --- A disk that is full, or cannot be written ---


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            OSError(28, "No space left on device", "/data/x"),
            "/data/x: No space left on device. DATA",
        ),
        (
            OperationalError("unable to open database file"),
            "unable to open database file. DATA_DIR",
        ),
        (OSError(30, "Read-only file system"), "the disk: Read-only file system. DATA_DIR"),
    ],
)
def test_a_disk_that_cannot_be_written_is_one_line(
    error: Exception, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: list[str]) -> None:
        raise error

    monkeypatch.setattr("django.core.management.execute_from_command_line", fail)
    monkeypatch.setattr(sys, "argv", ["manage.py", "migrate"])
    with pytest.raises(SystemExit, match=line):
        command.main()
    monkeypatch.setattr(sys, "argv", ["manage.py", "migrate", "--traceback"])
    with pytest.raises(type(error)):
        command.main()


def test_a_database_of_another_user_is_refused(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may write to every file, so that nothing shows here but the refusal."""
    path = tmp_path / "db.sqlite3"
    path.touch()
    monkeypatch.setattr(connection, "vendor", "sqlite")
    monkeypatch.setitem(settings.DATABASES["default"], "NAME", path)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(CommandError, match=r"make this user the owner of all files in it"):
        require_migrations()


@pytest.mark.parametrize(
    ("program", "arguments", "run"),
    [
        ("/usr/bin/uamp-server", [], ["up"]),
        ("/usr/bin/uamp-server", ["try", "--port", "0"], ["up", "--demo", "--port", "0"]),
        ("/usr/bin/uamp-server", ["backup", "f.tar"], ["backup", "f.tar"]),
        ("manage.py", [], []),
    ],
)
def test_the_command_names_a_command_of_django(
    program: str, arguments: list[str], run: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr("django.core.management.execute_from_command_line", ran.append)
    monkeypatch.setattr(sys, "argv", [program, *arguments])
    command.main()
    assert ran == [[program, *run]]


@pytest.mark.parametrize("argument", ["help", "--help", "-h"])
def test_help_lists_the_commands_that_an_operator_needs(
    argument: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["uamp-server", argument])
    command.main()
    printed = capsys.readouterr().out
    listed = re.findall(r"^  (\w+) .*  \w", printed, re.MULTILINE)
    assert len(listed) == 10
    assert set(listed) <= {*get_commands(), *command.ALIASES}
    assert max(map(len, printed.splitlines())) <= 100
    assert "`uamp-server help --commands` all commands" in printed


def literals(module: Path) -> Iterator[str]:
    """Yield the texts of a module that it may print: those that are no statements."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in statements:
            yield str(node.value)


@pytest.mark.long
def test_nothing_that_is_printed_names_a_program_that_an_installation_lacks() -> None:
    rooms = ("uamp_project", *(path.name for path in ROOT.glob("*_app")))
    modules = {
        module.relative_to(ROOT).as_posix()
        for room in rooms
        for module in (ROOT / room).rglob("*.py")
        if any("manage.py" in text for text in literals(module))
    }
    assert modules == {"uamp_project/command.py"}


@pytest.mark.parametrize("name", ["version", "--version"])
def test_the_version_is_that_of_the_server(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["uamp-server", name])
    command.main()
    release = tomllib.loads(Path("pyproject.toml").read_text())["project"]["version"]
    assert capsys.readouterr().out == f"uamp-server {release}\n"
