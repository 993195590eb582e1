"""/healthz and /readyz on the real server, and what makes it not ready."""

import asyncio
from pathlib import Path

import httpx
import pytest
from channels.layers import channel_layers, get_channel_layer
from django.db import connection

from sessions_app import runner
from tests.conftest import ServerAddress
from uamp_project import health


def test_a_server_that_has_everything_is_ready(server: ServerAddress) -> None:
    assert httpx.get(f"{server.http}/healthz").json() == {"status": "alive"}
    ready = httpx.get(f"{server.http}/readyz")

    assert (ready.status_code, ready.json()) == (200, {"status": "ready"})


def test_a_probe_leaves_no_channel_behind(server: ServerAddress) -> None:
    httpx.get(f"{server.http}/readyz")
    before = get_channel_layer().channel_count
    for _ in range(3):
        httpx.get(f"{server.http}/readyz")

    assert get_channel_layer().channel_count == before


def test_a_missing_migration_is_said(server: ServerAddress) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM django_migrations WHERE app = 'sessions_app' AND name = '0001_initial'"
        )
    try:
        ready = httpx.get(f"{server.http}/readyz")
        alive = httpx.get(f"{server.http}/healthz")
    finally:
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO django_migrations (app, name, applied)"
                " VALUES ('sessions_app', '0001_initial', CURRENT_TIMESTAMP)"
            )

    assert (ready.status_code, ready.json()["reasons"]) == (503, ["migrations"])
    assert alive.status_code == 200


def test_a_layer_that_does_not_answer_is_said(
    server: ServerAddress, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class DeafLayer:
        async def new_channel(self) -> str:
            await asyncio.sleep(60)
            return ""

    monkeypatch.setattr(health, "PROBE_SECONDS", 0.1)
    kept = channel_layers.set("default", DeafLayer())
    try:
        ready = httpx.get(f"{server.http}/readyz")
    finally:
        channel_layers.set("default", kept)

    assert (ready.status_code, ready.json()["reasons"]) == (503, ["layer"])


@pytest.mark.django_db(transaction=True)
async def test_a_draining_process_is_not_ready(database_threads: None) -> None:
    process = runner.current()
    process.draining = True
    assert not runner.is_ready()
    await runner.drain()
