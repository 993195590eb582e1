"""Creates the database of a test process, empties it between tests, and drops it.

Migrations run once per test run: the first pytest-xdist worker that needs a database creates one
with the run's name, and every worker copies it. Without workers, that database itself is used.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import psycopg
from django.conf import settings
from django.db import connection, connections, transaction
from django.db.backends.utils import CursorWrapper
from django.test import TransactionTestCase

from sessions_app.database import LONG_THREADS, close_connections, executor, long_threads
from tests.run_folder import copy_of, locked
from tests.settings import RUN_FOLDER, RUN_NAME, WORKER

# Created by the migrations and the same for every test.
KEPT = {"django_content_type", "auth_permission", "auth_group", "auth_group_permissions"}
MANY_ROWS = 500
# How long the work of a test may keep its database threads busy after its end.
IDLE_SECONDS = 60.0
# The PostgreSQL database that is copied for product instances.
PREPARED = f"uamp_prepared_{RUN_NAME}"
_held: list[sqlite3.Connection] = []
TRIGGERS_OF_SQLITE = (
    "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND sql LIKE '% BEFORE DELETE %'"
)
# While this table has a row, the triggers of SQLite let rows be deleted.
EMPTYING = "tests_emptying"
TRIGGERS_OF_POSTGRESQL = (
    "SELECT tgrelid::regclass::text, tgname FROM pg_trigger WHERE NOT tgisinternal"
)


def make_database() -> None:
    """Create the database of this process and connect to it."""
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
    let_triggers_be_passed()
    if connection.vendor == "sqlite":
        _keep_open(connection.settings_dict["NAME"])
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            # The database does not outlive the run, so commits need not wait for the disk.
            name = connection.ops.quote_name(connection.settings_dict["NAME"])
            cursor.execute(f"ALTER DATABASE {name} SET synchronous_commit TO off")
        connections.close_all()


def let_triggers_be_passed() -> None:
    """Give the new triggers that prevent deletion a condition: SQLite cannot disable one.

    Dropping and creating them in each test would make every connection read the schema again.
    """
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE IF NOT EXISTS {EMPTYING} (id INTEGER)")
        cursor.execute(TRIGGERS_OF_SQLITE)
        new = [(name, sql) for name, sql in cursor.fetchall() if EMPTYING not in sql]
        for name, sql in new:
            condition = f" WHEN NOT EXISTS (SELECT 1 FROM {EMPTYING}) BEGIN "  # noqa: S608 our table
            cursor.execute(f"DROP TRIGGER {name}")
            cursor.execute(sql.replace(" BEGIN ", condition, 1))


def _keep_open(name: str) -> None:
    """Keep a connection to a SQLite database for as long as this process runs.

    The last connection that closes writes the log into the database and deletes it, and the next
    one creates it anew: in each test.
    """
    sqlite_connection = sqlite3.connect(name, check_same_thread=False)
    # A database is opened by the first statement that reads it.
    sqlite_connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    _held.append(sqlite_connection)


def copy_prepared(url: str, make: Callable[[Path, str], None], folder: Path) -> None:
    """Create a URL's PostgreSQL database and its folder as copies of the run's template.

    The first process of the run that needs the template calls `make` with a folder and the URL of
    an empty database. `drop_databases` drops the template.
    """
    server, _, name = url.rpartition("/")
    template = f"{server}/{PREPARED}"

    def make_template(fresh_folder: Path) -> None:
        _execute(template, f'DROP DATABASE IF EXISTS "{PREPARED}" WITH (FORCE)')
        _execute(template, f'CREATE DATABASE "{PREPARED}"')
        make(fresh_folder, template)
        (fresh_folder / "template").write_text(template)

    copy_of("prepared", make_template, folder)
    with locked("prepared"):
        # A template can only be copied while no other process is connected to it.
        _execute(url, f'CREATE DATABASE "{name}" TEMPLATE "{PREPARED}"')


def copy_migrated(folder: Path) -> None:
    """Copy the run's migrated database to a data directory, if the run has one on SQLite.

    Migrating the copy takes a quarter of the time of migrating from scratch.
    """
    source, target = RUN_FOLDER / "test.sqlite3", folder / "db.sqlite3"
    # Another process may be creating it.
    with locked("database"):
        if connection.vendor == "sqlite" and (RUN_FOLDER / "migrated").exists():
            target.touch(mode=0o600)
            with (
                closing(sqlite3.connect(source)) as migrated,
                closing(sqlite3.connect(target)) as copy,
            ):
                migrated.backup(copy)


def _execute(url: str, statement: str) -> None:
    """Execute a statement about a URL's database while connected to another one."""
    with psycopg.connect(f"{url.rpartition('/')[0]}/postgres", autocommit=True) as server:
        server.execute(statement.encode())


def leave_database() -> None:
    """Release the database in every thread; `drop_databases` drops it after the last test."""
    close_connections()
    connections.close_all()
    while _held:
        _held.pop().close()
    if connection.vendor == "postgresql":
        connection.close_pool()  # type: ignore[attr-defined]


def wait_for_threads() -> None:
    """Wait until the database threads have done what was submitted to them."""
    for threads, count in ((executor(), settings.DB_THREADS), (long_threads, LONG_THREADS)):
        # Only when all of them wait here has the last one finished its work.
        barrier = threading.Barrier(count)
        futures = [threads.submit(barrier.wait, IDLE_SECONDS) for _ in range(count)]
        for future in futures:
            future.result(IDLE_SECONDS)


def drop_databases() -> None:
    """Drop the run's PostgreSQL databases; called by the process that started the run.

    Workers cannot: the product's connections cancel statements after ten seconds, and dropping a
    database on a busy server takes longer. SQLite databases are files in the run's folder.
    """
    prepared = RUN_FOLDER / "prepared" / "template"
    if prepared.exists():
        _execute(prepared.read_text(), f'DROP DATABASE IF EXISTS "{PREPARED}" WITH (FORCE)')
    name = str(connection.settings_dict["TEST"]["NAME"])
    if connection.vendor != "postgresql" or not (RUN_FOLDER / "migrated").exists():
        return
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as server:
        names = server.execute("SELECT datname FROM pg_database").fetchall()
        for (database,) in names:
            if database == name or database.startswith(f"{name}_gw"):
                server.execute(f'DROP DATABASE "{database}" WITH (FORCE)'.encode())


def empty_database_after_tests() -> None:
    """Make tests that commit empty their database with `empty_database` instead of `flush`.

    `flush` truncates every table and recreates the content types and permissions, which takes a
    second or more on PostgreSQL. The ledger's triggers reject it as well.
    """
    TransactionTestCase._fixture_teardown = lambda _: empty_database()  # type: ignore[attr-defined]
    # A new connection to SQLite reads the whole schema.
    TransactionTestCase._should_reload_connections = (  # type: ignore[attr-defined]
        lambda _: connection.vendor != "sqlite"
    )


def empty_database() -> None:
    """Delete every row that a test may have written, once all writers have finished."""
    tables = sorted(set(connection.introspection.django_table_names(only_existing=True)) - KEPT)
    with transaction.atomic(), connection.cursor() as cursor:
        # On SQLite, a transaction excludes other writers from the start.
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
    """Remove deleted rows, which every sequential scan would read, from some or all tables."""
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        # It may take longer than the product allows for a statement.
        cursor.execute("SET statement_timeout = 0")
        try:
            cursor.execute(f"VACUUM {', '.join(map(_quoted, tables))}")
        finally:
            cursor.execute("RESET statement_timeout")


def _without_triggers(cursor: CursorWrapper, tables: set[str]) -> tuple[list[str], list[str]]:
    """Return the statements that disable and restore the triggers that prevent deletion."""
    if connection.vendor == "sqlite":
        return [f"INSERT INTO {EMPTYING} VALUES (1)"], [f"DELETE FROM {EMPTYING}"]  # noqa: S608 our table
    cursor.execute(TRIGGERS_OF_POSTGRESQL)
    triggers = [(table, name) for table, name in cursor.fetchall() if table in tables]
    return (
        [f"ALTER TABLE {table} DISABLE TRIGGER {name}" for table, name in triggers],
        [
            # A table with pending constraint checks cannot be altered.
            "SET CONSTRAINTS ALL IMMEDIATE",
            *(f"ALTER TABLE {table} ENABLE TRIGGER {name}" for table, name in triggers),
        ],
    )


def _quoted(name: str) -> str:
    return str(connection.ops.quote_name(name))
