"""Migrations before a command: all required, none of a newer server, applied by one process."""

import fcntl
import os
import random
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psycopg
from django.apps import apps
from django.conf import settings
from django.core.management.base import CommandError
from django.db import DatabaseError, OperationalError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from uamp_project import health
from uamp_project.command import program_name

# Of PostgreSQL's advisory locks: one process migrates at a time. The number is arbitrary.
_LOCK: Final = 0x75616D70
_WAIT_SECONDS: Final = 0.5
_LOCK_SECONDS: Final = 600.0
"""How long a process waits for another one that migrates."""
_HOLDER: Final = """
SELECT pid, COALESCE(host(client_addr), 'a local socket'), state
FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND granted AND classid = 0 AND objid = %s
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
_ATTEMPTS: Final = 30
"""How often a migration is tried whose tables are in use."""
_PAUSE_SECONDS: Final = 5.0
# Limits of a request. An index of a large table takes longer, and so do rows that are rewritten.
_LIMITS: Final = ("statement_timeout", "idle_in_transaction_session_timeout")


def require_migrations() -> None:
    """Raise CommandError if the database is silent, read-only, or lacks migrations."""
    path = settings.DATABASES["default"]["NAME"]
    if connection.vendor == "sqlite" and Path(path).exists() and not os.access(path, os.W_OK):
        raise CommandError(
            f"this user cannot write to the database {path}: run the command as the owner of"
            " DATA_DIR, or make this user the owner of all files in it"
        )
    try:
        missing = health.missing_migrations()
    except DatabaseError as error:
        raise _unreachable(error) from error
    if missing:
        raise CommandError(
            f"run `{program_name()} migrate` first: the database {_name()} lacks {len(missing)}"
            " migrations. DATA_DIR and DATABASE_URL choose the database"
        )


def refuse_newer_database() -> None:
    """Raise CommandError if the database does not answer, or a newer server has migrated it.

    Processes of the release before may run on it during an upgrade; commands that migrate may not.
    """
    try:
        newer = unknown_migrations(MigrationRecorder(connection).applied_migrations())
    except DatabaseError as error:
        raise _unreachable(error) from error
    if newer:
        raise CommandError(
            f"the database {_name()} was migrated by a newer version of the server"
            f" ({', '.join(newer[:3])}). Install that version, or restore a backup that version"
            f" {settings.UAMP_VERSION} made"
        )


def unknown_migrations(applied: Iterable[tuple[str, str]]) -> list[str]:
    """Return the migrations of our applications that this version does not have, as `app.name`."""
    existing = MigrationLoader(None).disk_migrations
    replaced = {key for migration in existing.values() for key in migration.replaces}
    ours = {config.label for config in apps.get_app_configs() if config.name.endswith("_app")}
    unknown = {key for key in applied if key[0] in ours} - existing.keys() - replaced
    return [".".join(key) for key in sorted(unknown)]


@contextmanager
def alone(waits: Callable[[], None]) -> Iterator[None]:
    """Let one process migrate at a time; another calls `waits` once, and waits.

    It asks again and again, because the timeouts of statements and locks would end a long wait.
    Raises CommandError, with the process that holds the lock, after _LOCK_SECONDS.
    """
    path = Path(settings.DATA_DIR) / "migrate.lock"
    with path.open("a") as file:
        _poll(lambda: _lock_file(file.fileno()), waits, lambda: _file_holder(path))
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}")
        file.flush()
        if connection.vendor != "postgresql":
            yield
            return
        try:
            _poll(lambda: _ask("pg_try_advisory_lock"), waits, _session_holder)
        except DatabaseError as error:
            raise _unreachable(error) from error
        try:
            yield
        finally:
            _ask("pg_advisory_unlock")


@contextmanager
def _unlimited_statements() -> Iterator[None]:
    """Let this thread's statements run for as long as they need, on PostgreSQL.

    They still wait for a lock no longer than requests do: all that need the table wait
    behind them.
    """
    if connection.vendor != "postgresql":
        yield
        return
    before = {name: _set(name, "0") for name in _LIMITS}
    try:
        yield
    finally:
        # A connection that broke has none to restore.
        if connection.is_usable():
            for name, value in before.items():
                _set(name, value)


def run_migrations(migrate: Callable[[], object], waits: Callable[[], None]) -> None:
    """Call `migrate`, again while tables are in use; `waits` is called before each repetition.

    Each migration is a transaction, so a repetition starts with the one that failed.
    """
    with _unlimited_statements():
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                migrate()
            except OperationalError as error:
                if attempt == _ATTEMPTS or not _is_locked(error):
                    raise
            else:
                return
            waits()
            time.sleep(_PAUSE_SECONDS * random.uniform(0.5, 1))  # noqa: S311 not a secret


def _is_locked(error: OperationalError) -> bool:
    refusals = (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)
    return isinstance(error.__cause__, refusals)


def _set(name: str, value: str) -> str:
    """Change a setting of this thread's connection; return the value it had."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting(%s), set_config(%s, %s, false)", [name, name, value])
        before, _ = cursor.fetchone()
    return str(before)


def _poll(locked: Callable[[], bool], waits: Callable[[], None], holder: Callable[[], str]) -> None:
    """Wait until `locked` succeeds; raise CommandError with the `holder` after _LOCK_SECONDS."""
    if locked():
        return
    waits()
    deadline = time.monotonic() + _LOCK_SECONDS
    while not locked():
        if time.monotonic() > deadline:
            raise CommandError(
                f"gave up after {_LOCK_SECONDS / 60:g} minutes: {holder()}. Wait until that"
                " process has ended, or end it, and run this command again"
            )
        time.sleep(_WAIT_SECONDS)


def _lock_file(number: int) -> bool:
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _file_holder(path: Path) -> str:
    return f"{path} is locked by {path.read_text() or 'another process'}"


def _session_holder() -> str:
    with connection.cursor() as cursor:
        cursor.execute(_HOLDER, [_LOCK])
        row = cursor.fetchone()
    if row is None:
        return f"another process migrates the database {_name()}"
    number, address, state = row
    return (
        f"process {number} of PostgreSQL, for a client at {address}, holds the lock of migrations"
        f" and is {state}. If no command migrates, a connection pooler left it behind: `SELECT"
        f" pg_terminate_backend({number})` releases it"
    )


def _ask(function: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(%s)", [_LOCK])
        (answer,) = cursor.fetchone()
    return bool(answer)


def _unreachable(error: DatabaseError) -> CommandError:
    return CommandError(f"the database {_name()} does not answer: {str(error).strip()}")


def _name() -> str:
    """Return the name and address of the database, without the user."""
    chosen = settings.DATABASES["default"]
    host, port = chosen.get("HOST"), chosen.get("PORT")
    if not host:
        return str(chosen["NAME"])
    return f"{chosen['NAME']} at {host}:{port}" if port else f"{chosen['NAME']} at {host}"
