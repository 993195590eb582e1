"""The metrics that are read from the database, while it does not answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import OperationalError
from prometheus_client import CollectorRegistry, Counter, generate_latest

from uamp_project.monitoring import metrics

if TYPE_CHECKING:
    from typing import NoReturn

pytestmark = pytest.mark.django_db


def refuse() -> NoReturn:
    raise OperationalError("the connection was refused")


def test_counters_are_there_while_the_database_is_away(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    registry = CollectorRegistry()
    Counter("errors", "Errors.", registry=registry).inc()
    registry.register(metrics.RowsCollector())
    monkeypatch.setattr(metrics, "READ_SECONDS", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(metrics, "open_work", refuse)
        text = generate_latest(registry).decode()
    assert "errors_total 1.0" in text
    assert "uamp_rows_read 0.0" in text
    assert "uamp_open_work" not in text
    (record,) = caplog.records
    assert record.getMessage().endswith("are absent: the connection was refused")
    text = generate_latest(registry).decode()
    assert "uamp_rows_read 1.0" in text
    assert "uamp_open_work" in text
