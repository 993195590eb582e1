"""The metrics of a process: read at its own address, also while the database does not answer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NoReturn

import httpx
import pytest
from django.db import OperationalError

from telemetry import metrics
from uamp_project.monitoring import metrics_endpoint

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_django import Settings

    from tests.conftest import ServerAddress

pytestmark = pytest.mark.django_db(transaction=True)
TOKEN = "a token of the metrics"


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    """Let each scrape read the rows."""
    settings.UAMP_METRICS_TOKEN = TOKEN
    monkeypatch.setattr(metrics_endpoint, "READ_SECONDS", 0.0)
    monkeypatch.setattr(metrics_endpoint, "WAIT_SECONDS", 0.5)


def scrape(server: ServerAddress, host: str = "localhost") -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {TOKEN}", "Host": host}
    answer = httpx.get(f"{server.http}/metrics", headers=headers, timeout=20, trust_env=False)
    return answer.status_code, answer.text


def refuse() -> NoReturn:
    raise OperationalError("the connection was refused")


def hang() -> NoReturn:
    """Wait for a connection longer than a scrape does."""
    time.sleep(2)
    raise OperationalError("there was no connection in time")


@pytest.mark.parametrize("read", [refuse, hang])
def test_counters_are_served_while_the_database_is_away(
    server: ServerAddress, monkeypatch: pytest.MonkeyPatch, read: Callable[[], NoReturn]
) -> None:
    metrics.WEBHOOK_ATTEMPTS.labels("sent").inc(0)
    with monkeypatch.context() as patch:
        patch.setattr(metrics_endpoint, "open_work", read)
        status, text = scrape(server)
    assert status == 200
    assert 'uamp_webhook_attempts_total{outcome="sent"}' in text
    assert "uamp_rows_read 0.0" in text
    assert "uamp_open_work" not in text
    status, text = scrape(server)
    assert (status, "uamp_rows_read 1.0" in text) == (200, True)
    assert "uamp_open_work" in text


def test_a_process_is_scraped_at_its_own_address(server: ServerAddress, settings: Settings) -> None:
    """Neither ALLOWED_HOSTS nor the redirect to https is about it, nor the proxy that is passed."""
    settings.ALLOWED_HOSTS, settings.SECURE_SSL_REDIRECT, settings.HTTPS = ["chat.org"], True, True
    settings.UAMP_TRUSTED_PROXIES = ["127.0.0.1"]
    status, text = scrape(server, host="10.0.0.11:8000")
    assert (status, "uamp_rows_read" in text) == (200, True)
    settings.UAMP_METRICS_TOKEN = ""
    assert scrape(server)[0] == 404
