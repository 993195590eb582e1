"""A clock that differs from the database's is reported by the check, and when a process starts."""

from __future__ import annotations

import logging
import time
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import OperationalError

from uamp_project import checks, database_clock

pytestmark = pytest.mark.django_db

real_time = time.time


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, ""),
        (1.0, ""),
        (-1.0, ""),
        (90.0, "clock is 90 seconds ahead of that of the database"),
        (-90.0, "clock is 90 seconds behind that of the database"),
    ],
)
def test_a_difference_is_reported_with_its_direction(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, seconds: float, words: str
) -> None:
    monkeypatch.setattr("uamp_project.database_clock.time.time", lambda: real_time() + seconds)
    with caplog.at_level(logging.WARNING, logger="uamp_project.database_clock"):
        database_clock.warn_of_clock()
    messages = [*checks.check_clock(databases=["default"]), *checks.check_clock()]

    logged = [record.getMessage() for record in caplog.records]
    assert [message.msg for message in messages] == logged
    assert [message.id for message in messages] == (["uamp.W024"] if words else [])
    assert len(logged) == bool(words)
    assert all(words in text for text in logged)


@pytest.mark.parametrize(
    ("times", "expected"),
    [((10, 12, 20), 0), ((10, 7, 20), 3), ((10, 25, 20), -5), ((10, 10, 10), 0)],
)
def test_the_time_of_the_query_does_not_count_as_a_difference(
    times: tuple[float, float, float], expected: float
) -> None:
    assert database_clock._difference(*times) == expected


def test_a_database_that_does_not_answer_stops_no_start(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise OperationalError("connection refused")

    silent = SimpleNamespace(vendor="postgresql", ensure_connection=fail)
    monkeypatch.setattr(database_clock, "connection", silent)
    with caplog.at_level(logging.WARNING, logger="uamp_project.database_clock"):
        database_clock.warn_of_clock()

    (record,) = caplog.records
    assert "could not be compared with the database's: connection refused" in record.getMessage()
    assert checks.check_clock(databases=["default"]) == []
