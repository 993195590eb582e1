"""Makes the database of a process of tests, empties it between tests, and drops it.

The migrations run once in a run of tests: the first worker of pytest-xdist that needs a database
makes the one with the name of the run, every worker copies it. Without workers it is used itself.
"""

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import psycopg
from django.db import connection, connections, transaction
from django.db.backends.utils import CursorWrapper
from django.test import TransactionTestCase

from sessions_app.database import close_connections
from tests.run_folder import copy_of, locked
from tests.settings import RUN_FOLDER, RUN_NAME, WORKER

# Made by the migrations, the same for every test.
KEPT = {"django_content_type", "auth_permission", "auth_group", "auth_group_permissions"}
MANY_ROWS = 500
# The database on PostgreSQL from which products of their own are copied.
PREPARED = f"uamp_prepared_{RUN_NAME}"
TRIGGERS_OF_SQLITE = (
    "SELECT tbl_name, name, sql FROM sqlite_master"
    " WHERE type = 'trigger' AND sql LIKE '% BEFORE DELETE %'"
)
TRIGGERS_OF_POSTGRESQL = (
    "SELECT tgrelid::regclass::text, tgname FROM pg_trigger WHERE NOT tgisinternal"
)


def make_database() -> None:
    """Make the database of this process and connect to it."""
    creation = connection.creation
    with locked("database"):
        migrated = RUN_FOLDER / "migrated"
        if migrated.exists():
            connection.settings_dict["NAME"] = connection.settings_dict["TEST"]["NAME"]
        else:
            creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
            migrated.touch()
        if WORKER:
            connection.close()
            creation.clone_test_db(WORKER, verbosity=0)
            copy = creation.get_test_db_clone_settings(WORKER)
            connection.settings_dict.update(copy)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            # The database does not outlive the run; a commit need not wait for the disk.
            name = connection.ops.quote_name(connection.settings_dict["NAME"])
            cursor.execute(f"ALTER DATABASE {name} SET synchronous_commit TO off")
        connections.close_all()


def copy_prepared(url: str, make: Callable[[Path, str], None], folder: Path) -> None:
    """Make the PostgreSQL database of a URL, and its folder, as copies of what the run made once.

    `make` is called by the first process of the run that needs them, with a folder and the URL of
    an empty database. `drop_databases` drops that one.
    """
    server, _, name = url.rpartition("/")
    template = f"{server}/{PREPARED}"

    def make_template(made: Path) -> None:
        _execute(template, f'DROP DATABASE IF EXISTS "{PREPARED}" WITH (FORCE)')
        _execute(template, f'CREATE DATABASE "{PREPARED}"')
        make(made, template)
        (made / "template").write_text(template)

    copy_of("prepared", make_template, folder)
    with locked("prepared"):
        # A template is copied while no other process is connected to it.
        _execute(url, f'CREATE DATABASE "{name}" TEMPLATE "{PREPARED}"')


def copy_migrated(folder: Path) -> None:
    """Copy the run's migrated database to a data directory, if the run has one on SQLite.

    To migrate the copy takes a fourth of what it takes from nothing.
    """
    source, target = RUN_FOLDER / "test.sqlite3", folder / "db.sqlite3"
    # Another process may be making it.
    with locked("database"):
        if connection.vendor == "sqlite" and (RUN_FOLDER / "migrated").exists():
            target.touch(mode=0o600)
            with (
                closing(sqlite3.connect(source)) as migrated,
                closing(sqlite3.connect(target)) as copy,
            ):
                migrated.backup(copy)


def _execute(url: str, statement: str) -> None:
    """Execute a statement about the database of a URL, from another one."""
    with psycopg.connect(f"{url.rpartition('/')[0]}/postgres", autocommit=True) as server:
        server.execute(statement.encode())


def leave_database() -> None:
    """Let go of the database in every thread; `drop_databases` drops it after the last test."""
    close_connections()
    connections.close_all()
    if connection.vendor == "postgresql":
        connection.close_pool()  # type: ignore[attr-defined]


def drop_databases() -> None:
    """Drop the databases of the run on PostgreSQL; the process that started it calls this.

    Not a worker: a connection of the product ends a statement after ten seconds, and to drop a
    database on a busy server takes longer. Those on SQLite are files in the folder of the run.
    """
    prepared = RUN_FOLDER / "prepared" / "template"
    if prepared.exists():
        _execute(prepared.read_text(), f'DROP DATABASE IF EXISTS "{PREPARED}" WITH (FORCE)')
    name = str(connection.settings_dict["TEST"]["NAME"])
    if connection.vendor != "postgresql" or not (RUN_FOLDER / "migrated").exists():
        return
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as server:
        found = server.execute("SELECT datname FROM pg_database").fetchall()
        for (database,) in found:
            if database == name or database.startswith(f"{name}_gw"):
                server.execute(f'DROP DATABASE "{database}" WITH (FORCE)'.encode())


def empty_database_after_tests() -> None:
    """Have tests that commit empty their database with `empty_database`, not with `flush`.

    `flush` truncates every table and makes the content types and permissions again: a second and
    more on PostgreSQL. The triggers of the ledger refuse it as well.
    """
    TransactionTestCase._fixture_teardown = lambda _: empty_database()  # type: ignore[attr-defined]


def empty_database() -> None:
    """Delete every row that a test can have written, once all writers have ended."""
    tables = sorted(set(connection.introspection.django_table_names(only_existing=True)) - KEPT)
    with transaction.atomic(), connection.cursor() as cursor:
        # On SQLite a transaction of ours excludes other writers from its beginning.
        if connection.vendor == "postgresql":
            cursor.execute(f"LOCK TABLE {', '.join(map(_quoted, tables))} IN EXCLUSIVE MODE")
        cursor.execute(
            " UNION ALL ".join(
                f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {_quoted(table)})"  # noqa: S608 our tables
                for table in tables
            )
        )
        filled = [table for (table,) in cursor.fetchall()]
        if not filled:
            return
        before, after = _without_triggers(cursor, set(filled))
        deletions = [f"DELETE FROM {_quoted(table)}" for table in filled]  # noqa: S608 our tables
        for statement in before:
            cursor.execute(statement)
        large = []
        for table, statement in zip(filled, deletions, strict=True):
            cursor.execute(statement)
            if cursor.rowcount > MANY_ROWS:
                large.append(table)
        for statement in after:
            cursor.execute(statement)
    if large:
        vacuum(large)


def vacuum(tables: Sequence[str] = ()) -> None:
    """Remove deleted rows, which every sequential scan would read, from tables or from all."""
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        # It may take longer than a statement of the product.
        cursor.execute("SET statement_timeout = 0")
        try:
            cursor.execute(f"VACUUM {', '.join(map(_quoted, tables))}")
        finally:
            cursor.execute("RESET statement_timeout")


def _without_triggers(cursor: CursorWrapper, tables: set[str]) -> tuple[list[str], list[str]]:
    """Return the statements that take away what refuses to delete, and that put it back."""
    if connection.vendor == "sqlite":
        cursor.execute(TRIGGERS_OF_SQLITE)
        triggers = [(name, sql) for table, name, sql in cursor.fetchall() if table in tables]
        return [f"DROP TRIGGER {name}" for name, _ in triggers], [sql for _, sql in triggers]
    cursor.execute(TRIGGERS_OF_POSTGRESQL)
    triggers = [(table, name) for table, name in cursor.fetchall() if table in tables]
    return (
        [f"ALTER TABLE {table} DISABLE TRIGGER {name}" for table, name in triggers],
        [
            # A table with references that are still to be checked cannot be altered.
            "SET CONSTRAINTS ALL IMMEDIATE",
            *(f"ALTER TABLE {table} ENABLE TRIGGER {name}" for table, name in triggers),
        ],
    )


def _quoted(name: str) -> str:
    return str(connection.ops.quote_name(name))
