"""Dumps of databases: while others write, and over the connection that the server uses."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING, Final

import pytest
from django.db.utils import ConnectionHandler

from tests.threads import join_threads
from uamp_project.backup import dumps
from uamp_project.settings import environment

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.any_database

BLOBS: Final = 64
"""Of a MiB each."""
WRITER_SECONDS: Final = 30.0
PROGRAM: Final = f"""#!{sys.executable}
import os, pathlib, sys
(file,) = (a.partition("=")[2] for a in sys.argv if a.startswith("--file="))
pathlib.Path(file).write_text("\\n".join(f"{{k}}={{v}}" for k, v in os.environ.items()))
"""


def test_a_copy_ends_while_another_connection_writes_all_the_time(tmp_path: Path) -> None:
    source, copy = tmp_path / "source.sqlite3", tmp_path / "copy.sqlite3"
    with closing(sqlite3.connect(source)) as database, database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE blobs (data BLOB)")
        for _ in range(BLOBS):
            database.execute("INSERT INTO blobs VALUES (randomblob(1048576))")
    begun, ended = threading.Event(), threading.Event()

    def write() -> None:
        deadline = time.monotonic() + WRITER_SECONDS
        with closing(sqlite3.connect(source, timeout=20, isolation_level=None)) as database:
            database.execute("PRAGMA synchronous=OFF")
            while not ended.is_set() and time.monotonic() < deadline:
                database.execute("INSERT INTO blobs VALUES (x'00')")
                begun.set()

    writer = threading.Thread(target=write)
    writer.start()
    assert begun.wait(WRITER_SECONDS)
    try:
        dumps.copy_sqlite(source, copy)
        assert writer.is_alive(), "the copy ended only after the writer"
    finally:
        ended.set()
        join_threads([writer])
    with closing(sqlite3.connect(copy)) as database:
        (count,) = database.execute("SELECT count(*) FROM blobs").fetchone()
        assert count > BLOBS
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (
            "postgres://uamp:se%40cret@db.example:6432/chats",
            {
                "PGHOST": "db.example",
                "PGPORT": "6432",
                "PGUSER": "uamp",
                "PGPASSWORD": "se@cret",
                "PGDATABASE": "chats",
            },
        ),
        (
            "postgres://uamp@db/chats?sslmode=verify-full&sslrootcert=/ca&sslcert=/me&sslkey=/key",
            {
                "PGHOST": "db",
                "PGSSLMODE": "verify-full",
                "PGSSLROOTCERT": "/ca",
                "PGSSLCERT": "/me",
                "PGSSLKEY": "/key",
            },
        ),
        ("postgres://uamp@/chats?host=/run/postgresql", {"PGHOST": "/run/postgresql"}),
    ],
)
def test_a_dump_connects_as_the_server_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, expected: dict[str, str]
) -> None:
    program = tmp_path / "pg_dump"
    program.write_text(PROGRAM)
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("X", url)
    config = environment.database("X") | {"ENGINE": "uamp_project.postgresql"}
    monkeypatch.setattr(dumps, "connection", ConnectionHandler({"default": config})["default"])

    lines = dumps.dump_database(tmp_path).read_text().splitlines()

    variables = dict(line.partition("=")[::2] for line in lines if line.startswith("PG"))
    assert expected.items() <= variables.items()
    assert "PGCLIENTENCODING" not in variables
