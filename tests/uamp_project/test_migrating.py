"""Migrations on a busy PostgreSQL: they wait for tables, and take the time that they need."""

from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection, transaction

from uamp_project.management import migrated
from uamp_project.management.migrated import run_migrations

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres]

TABLE = "agents_app_agent"


def execute(statement: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone() if cursor.description else None


@pytest.fixture
def reader() -> Any:
    """Return another connection, whose open transaction has read the table."""
    with psycopg.connect(**connection.get_connection_params() | {"cursor_factory": None}) as other:
        other.execute(f"LOCK TABLE {TABLE} IN ACCESS SHARE MODE")
        yield other


@pytest.fixture
def limits() -> Any:
    """Give this connection short limits."""
    names = ("statement_timeout", "lock_timeout")
    before = [execute(f"SHOW {name}")[0] for name in names]
    for name in names:
        execute(f"SET {name} = '100ms'")
    yield
    for name, value in zip(names, before, strict=True):
        execute(f"SET {name} = '{value}'")


def alter() -> None:
    with transaction.atomic():
        execute(f"ALTER TABLE {TABLE} ADD COLUMN planted integer")
        transaction.set_rollback(True)


@pytest.mark.usefixtures("limits")
def test_a_migration_waits_for_a_table_in_use(
    reader: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrated, "_PAUSE_SECONDS", 0.01)
    waits = 0

    def wait() -> None:
        nonlocal waits
        waits += 1
        if waits == 2:
            reader.rollback()

    run_migrations(alter, wait)

    assert waits == 2


@pytest.mark.usefixtures("limits", "reader")
def test_a_table_that_stays_in_use_ends_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrated, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(migrated, "_ATTEMPTS", 3)
    waits: list[None] = []

    with pytest.raises(OperationalError, match="lock timeout"):
        run_migrations(alter, lambda: waits.append(None))

    assert len(waits) == 2


@pytest.mark.usefixtures("limits")
def test_a_migration_takes_longer_than_a_request_may() -> None:
    run_migrations(lambda: execute("SELECT pg_sleep(0.3)"), pytest.fail)

    with pytest.raises(OperationalError, match="statement timeout"):
        execute("SELECT pg_sleep(0.3)")


@pytest.mark.usefixtures("limits")
def test_another_error_is_not_repeated() -> None:
    attempts: list[None] = []

    def fail() -> None:
        attempts.append(None)
        raise OperationalError("the disk is full")

    with pytest.raises(OperationalError, match="disk"):
        run_migrations(fail, pytest.fail)

    assert len(attempts) == 1
