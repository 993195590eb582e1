"""Dumping the database to a file and restoring it, with the tools of its vendor.

SQLite is copied through its backup interface while the server writes. PostgreSQL is read by
`pg_dump` and written by `pg_restore`, which must not be older than the server.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import connection
from psycopg.pq import Conninfo

if TYPE_CHECKING:
    from pathlib import Path

SQLITE: Final = "db.sqlite3"
POSTGRESQL: Final = "database.dump"
NAMES: Final = {"sqlite": SQLITE, "postgresql": POSTGRESQL}


class DumpError(Exception):
    """The database could not be read or written; the text says why, without a password."""


def dump_database(into: Path) -> Path:
    """Write a consistent snapshot of the database to a file in a folder; return the file."""
    file = into / NAMES[connection.vendor]
    if connection.vendor == "sqlite":
        try:
            copy_sqlite(_sqlite_path(), file)
        except sqlite3.Error as error:
            raise DumpError(
                f"The database could not be copied: {into}: {error}. The backup needs room for a"
                " copy of the database in DATA_DIR."
            ) from error
    else:
        _run("pg_dump", "--format=custom", "--no-owner", "--no-privileges", f"--file={file}")
    file.chmod(0o600)
    return file


def copy_sqlite(database: Path, to: Path) -> None:
    """Copy a SQLite database that others may be writing to; raises sqlite3.Error."""
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(to)) as copy:
        # All pages in one step, which is one read transaction: a write between two steps would make
        # SQLite start again from the first page.
        source.backup(copy)


def require_empty() -> None:
    """Raise DumpError if the database has tables, because a restore overwrites nothing."""
    if connection.vendor == "sqlite":
        if _sqlite_path().exists():
            raise DumpError(
                f"{_sqlite_path()} already exists. Choose a DATA_DIR without a database."
            )
        return
    if connection.introspection.table_names():
        raise DumpError("The database has tables. Restore into an empty one.")


def restore_database(folder: Path) -> None:
    """Restore the database from the file of `dump_database`; raises DumpError."""
    file = folder / NAMES[connection.vendor]
    connection.close()
    if connection.vendor == "sqlite":
        shutil.copyfile(file, _sqlite_path())
        _sqlite_path().chmod(0o600)
    else:
        name = _settings()["NAME"]
        options = ("--no-owner", "--no-privileges", "--exit-on-error", "--single-transaction")
        _run("pg_restore", *options, f"--dbname={name}", str(file))


def _settings() -> dict[str, Any]:
    database: dict[str, Any] = settings.DATABASES["default"]
    return database


def _sqlite_path() -> Path:
    path: Path = _settings()["NAME"]
    return path


def _run(program: str, *arguments: str) -> None:
    path = shutil.which(program)
    if path is None:
        raise DumpError(f"{program} is not installed; Debian has it in postgresql-client.")
    done = subprocess.run(  # noqa: S603 PostgreSQL's program, with the operator's own settings
        [path, *arguments],
        env={**os.environ, **_connection_variables()},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise DumpError(f"{program} failed: {done.stderr.strip()}")


def _connection_variables() -> dict[str, str]:
    """Return the parameters of the server's own connections as libpq's environment variables.

    With them, a dump connects to the same host as the server, and verifies it in the same way.
    """
    parameters = connection.get_connection_params()
    variables = {
        option.envvar.decode(): parameters.get(option.keyword.decode())
        for option in Conninfo.get_defaults()
        if option.envvar
    }
    # The encoding of a dump is that of its database.
    variables.pop("PGCLIENTENCODING", None)
    return {name: str(value) for name, value in variables.items() if value is not None}
