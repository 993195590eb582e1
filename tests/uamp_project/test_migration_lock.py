"""The lock of migrations: a process waits for it for a limited time, and says who holds it."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

import psycopg
import pytest
from django.core.management import CommandError
from django.db import connection

from uamp_project.management import migrated
from uamp_project.management.migrated import alone

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_django import Settings


@pytest.fixture(autouse=True)
def short_wait(monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path) -> None:
    monkeypatch.setattr(migrated, "_LOCK_SECONDS", 0.2)
    monkeypatch.setattr(migrated, "_WAIT_SECONDS", 0.05)
    settings.DATA_DIR = tmp_path


@pytest.fixture
def session() -> Iterator[psycopg.Connection]:
    """Give another connection, which holds the lock."""
    parameters = connection.get_connection_params() | {"cursor_factory": None}
    with psycopg.connect(**parameters, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(%s)", [migrated._LOCK])
        yield other


@pytest.mark.django_db(transaction=True)
def test_a_process_on_the_same_machine_is_named(tmp_path: Path) -> None:
    waits: list[None] = []
    with alone(lambda: waits.append(None)):
        assert f"process {os.getpid()} on " in (tmp_path / "migrate.lock").read_text()
        assert waits == []
        with (
            pytest.raises(CommandError, match=rf"migrate.lock is locked by process {os.getpid()} "),
            alone(lambda: waits.append(None)),
        ):
            pytest.fail("two migrate at once")
    assert waits == [None]
    with alone(pytest.fail):
        pass


@pytest.mark.django_db(transaction=True)
def test_a_lock_without_a_name_is_waited_for_likewise(tmp_path: Path) -> None:
    with (tmp_path / "migrate.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with pytest.raises(CommandError, match="is locked by another process"), alone(lambda: None):
            pytest.fail("two migrate at once")


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_the_connection_that_holds_the_lock_is_named(session: psycopg.Connection) -> None:
    number = session.info.backend_pid
    with (
        pytest.raises(CommandError, match=rf"process {number} of PostgreSQL.* is idle.") as refused,
        alone(lambda: None),
    ):
        pytest.fail("two migrate at once")
    assert f"pg_terminate_backend({number})" in str(refused.value)
    session.execute("SELECT pg_advisory_unlock(%s)", [migrated._LOCK])
    with alone(pytest.fail):
        pass
